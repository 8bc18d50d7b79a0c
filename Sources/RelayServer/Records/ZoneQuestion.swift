import RelayModel
import Storage

/// What a client asks of the changes of zones, apart from the zone and the token.
///
/// `changes/zone` takes it beside its zones and in the dictionary of each, which has the last word.
struct ZoneWishes: Sendable {
    /// The form of the records.
    private(set) var shown: RecordJSON
    /// The maximum number of records.
    private(set) var limit: Int
    /// The record types to list; `nil` lists all.
    private(set) var types: Set<RecordType>?
    /// The error that refuses the order, which the relay does not have.
    private(set) var refusal: JSONContractError?

    /// Parses the members of a request.
    ///
    /// - Throws: `JSONContractError` if they do not fit.
    init(_ body: JSONReader) throws {
        shown = try RecordJSON(body)
        limit = try body.resultsLimit()
        try read(body)
    }

    /// Returns the wishes with what a zone's own dictionary says.
    ///
    /// - Throws: `JSONContractError` if its members do not fit.
    func overridden(by zone: JSONReader) throws -> ZoneWishes {
        var wishes = self
        wishes.shown = try shown.overridden(by: zone)
        wishes.limit = try zone.resultsLimit(unless: limit)
        try wishes.read(zone)
        return wishes
    }

    private mutating func read(_ reader: JSONReader) throws(JSONContractError) {
        if let names = try reader.strings("desiredRecordTypes") {
            types = Set(names.compactMap(RecordType.init(rawValue:)))
        }
        if let isReversed = try reader.bool("reverse") {
            refusal = isReversed ? reader.failure("reverse", Self.oneOrder) : nil
        }
    }

    private static let oneOrder =
        "must be false: the relay returns changes only in the order in which they happened"
}

/// A client's request for the changes in one zone since a token.
struct ZoneQuestion: Sendable {
    private let zoneID: ZoneID
    /// The position up to which the client knows the changes.
    private let since: LogPosition
    /// The position up to which the zone had forgotten deletions when the client began.
    private let known: LogPosition
    private let wishes: ZoneWishes

    /// Parses the token in `body`, which is beside the zone's name or in its dictionary.
    ///
    /// - Throws: `JSONContractError`, or `APIError` for a token that was made for something else.
    init(
        _ zoneID: ZoneID, _ body: JSONReader, _ wishes: ZoneWishes, _ caller: RecordCaller
    ) throws {
        if let refusal = wishes.refusal { throw refusal }
        self.zoneID = zoneID
        self.wishes = wishes
        let numbers = try caller.numbers(
            try body.string("syncToken"), count: 2, of: Self.part(zoneID))
        since = LogPosition(numbers[0])
        known = LogPosition(numbers[1])
    }

    private static func part(_ zoneID: ZoneID) -> String { "zone/\(zoneID.sealName)" }

    /// The question to the store.
    var change: ZoneChangesQuestion {
        ZoneChangesQuestion(zoneID, after: since, rows: wishes.limit)
    }

    /// Returns the answer, given what the store has.
    ///
    /// - Throws: `APIError` if there is no such zone, or if the token is from before the deletions
    ///   that the zone remembers.
    func answer(_ changes: ZoneChanges, _ caller: RecordCaller) throws -> JSONObject {
        guard zoneID == .default || changes.zone?.isDeleted == false else {
            throw APIError.zoneNotFound(zoneID)
        }
        let memory = changes.zone?.prunedTo ?? .start
        // A new client never had what was forgotten by the time it begins.
        let known = since > .start ? self.known : memory
        guard since == .start || max(since, known) >= memory else {
            throw APIError.tokenExpired(
                "it is older than the deleted records that the relay still remembers; start again "
                    + "without a syncToken")
        }
        let records = changes.page.elements.filter {
            caller.mayRead($0) && wishes.types?.contains($0.recordType) != false
        }
        let last = changes.page.elements.last?.position ?? since
        let token = caller.token([last.rawValue, known.rawValue], of: Self.part(zoneID))
        return [
            "zoneID": caller.json(zoneID),
            "records": .array(records.map { .object(wishes.shown.record($0, for: caller)) }),
            "syncToken": .string(token),
            "moreComing": .bool(changes.page.hasMore),
        ]
    }
}
