import RelayModel
import Storage

/// What a client asks of one zone: what changed in it since a token.
struct ZoneQuestion: Sendable {
    private let zoneID: ZoneID
    /// How far the client has come, and up to where the zone may have forgotten what went when it
    /// began.
    private let since: LogPosition
    private let known: LogPosition
    private let rows: Int
    private let types: Set<RecordType>?
    private let shown: RecordJSON

    /// Reads the members of `body`, which are beside the zone's name or in its dictionary.
    ///
    /// - Throws: `JSONContractError`, or `APIError` for the token of another place.
    init(
        _ zoneID: ZoneID, _ body: JSONReader, limit: Int, _ caller: RecordCaller,
        _ shown: RecordJSON
    ) throws {
        guard try body.bool("reverse") != true else {
            throw body.failure("reverse", "the relay tells changes in their order only")
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

    /// What is asked of the store.
    var change: ZoneChangesQuestion { ZoneChangesQuestion(zoneID, after: since, rows: rows) }

    /// The answer, of what the store has.
    ///
    /// - Throws: `APIError` if there is no such zone, or if the token is from before what it still
    ///   remembers of records that have gone.
    func answer(_ changes: ZoneChanges, _ caller: RecordCaller) throws -> JSONObject {
        guard zoneID == .default || changes.zone?.isDeleted == false else {
            throw APIError.zoneNotFound(zoneID)
        }
        let memory = changes.zone?.prunedTo ?? .start
        // What had been forgotten when a client began with nothing it never had.
        let known = since > .start ? self.known : memory
        guard since == .start || max(since, known) >= memory else {
            throw APIError.tokenExpired(
                "it is older than what is remembered of records that have gone; begin again "
                    + "without one")
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
