import RelayModel
import Storage

/// A client's request for the changes in one zone since a token.
struct ZoneQuestion: Sendable {
    private let zoneID: ZoneID
    /// The position up to which the client knows the changes.
    private let since: LogPosition
    /// The position up to which the zone had forgotten deletions when the client began.
    private let known: LogPosition
    private let rows: Int
    private let types: Set<RecordType>?
    private let shown: RecordJSON

    /// Parses the members of `body`, which are beside the zone's name or in its dictionary.
    ///
    /// - Throws: `JSONContractError`, or `APIError` for a token that was made for something else.
    init(
        _ zoneID: ZoneID, _ body: JSONReader, limit: Int, _ caller: RecordCaller,
        _ shown: RecordJSON
    ) throws {
        guard try body.bool("reverse") != true else {
            throw body.failure(
                "reverse",
                "must be false: the relay returns changes only in the order in which they happened")
        }
        self.zoneID = zoneID
        self.shown = shown
        rows = limit
        let numbers = try caller.numbers(
            try body.string("syncToken"), count: 2, of: Self.part(zoneID))
        since = LogPosition(numbers[0])
        known = LogPosition(numbers[1])
        types = try body.strings("desiredRecordTypes").map {
            Set($0.compactMap(RecordType.init(rawValue:)))
        }
    }

    private static func part(_ zoneID: ZoneID) -> String { "zone/\(zoneID.sealName)" }

    /// The question to the store.
    var change: ZoneChangesQuestion { ZoneChangesQuestion(zoneID, after: since, rows: rows) }

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
            caller.mayRead($0) && types?.contains($0.recordType) != false
        }
        let last = changes.page.elements.last?.position ?? since
        let token = caller.token([last.rawValue, known.rawValue], of: Self.part(zoneID))
        return [
            "zoneID": caller.json(zoneID),
            "records": .array(records.map { .object(shown.record($0, for: caller)) }),
            "syncToken": .string(token),
            "moreComing": .bool(changes.page.hasMore),
        ]
    }
}
