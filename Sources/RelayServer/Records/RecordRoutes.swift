import RelayModel
import Storage

/// CloudKit's calls on single records: modify and lookup.
struct RecordRoutes: Sendable {
    private let calls: RecordCalls

    init(_ dependencies: RelayDependencies) {
        calls = RecordCalls(dependencies)
    }

    var routes: [RelayRoute] {
        [
            RelayRoute(.client, "POST", "\(RecordCalls.prefix)/records/modify", respond: modify),
            RelayRoute(.client, "POST", "\(RecordCalls.prefix)/records/lookup", respond: lookup),
        ]
    }

    private func modify(_ request: RelayRequest) async throws -> RelayAnswer {
        let caller = try await calls.caller(of: request)
        let identifiers = RandomIdentifiers(calls.dependencies.randomBytes)
        let body = try request.jsonBody()
        let modification = try RecordModification(
            body, by: caller, device: try request.deviceID(body),
            limits: calls.dependencies.limits, stored: try await storedTypes(body, caller),
            assignName: { identifiers.uuid().uppercased() })
        var outcomes: [RecordEditOutcome] = []
        if let edits = modification.edits, !edits.isEmpty {
            outcomes = try await calls.shadow.modify(
                edits, in: caller.place, by: caller.editor, atomicity: modification.atomicity,
                additions: modification.additions, at: request.receivedAt)
        }
        let entries = modification.entries(outcomes: outcomes, for: caller, uuid: request.uuid)
        return RelayAnswer(json: ["records": .array(entries)]).keepingUserToken(of: request)
    }

    /// The types of the records whose operations leave them out.
    private func storedTypes(
        _ body: JSONReader, _ caller: RecordCaller
    ) async throws -> [RecordID: RecordType] {
        let ids = RecordModification.untypedRecords(body, caller)
            .prefix(calls.dependencies.limits.operations)
        guard !ids.isEmpty else { return [:] }
        let stored = try await calls.shadow.records(named: Array(ids), in: caller.place)
        return Dictionary(stored.map { ($0.recordID, $0.recordType) }) { first, _ in first }
    }

    private func lookup(_ request: RelayRequest) async throws -> RelayAnswer {
        let caller = try await calls.caller(of: request)
        let body = try request.jsonBody()
        let shown = try RecordJSON(body)
        let wanted = try recordIDs(body, caller, shown)
        let found = try await calls.shadow.records(named: wanted.map(\.id), in: caller.place)
            .filter(caller.mayRead)
        // Of a name that records of several types have, the one that changed last is meant.
        let latest = Dictionary(found.map { ($0.recordID, $0) }) { first, second in
            first.position > second.position ? first : second
        }
        let entries = wanted.map { id, view -> JSONValue in
            if let record = latest[id] { return .object(view.record(record, for: caller)) }
            return APIError.noRecord(id.recordName)
                .entry(recordName: id.recordName.rawValue, uuid: request.uuid)
        }
        return RelayAnswer(json: ["records": .array(entries)]).keepingUserToken(of: request)
    }

    /// Dictionaries with `recordName`, each with `desiredKeys` of its own or not; or bare names.
    private func recordIDs(
        _ body: JSONReader, _ caller: RecordCaller, _ shown: RecordJSON
    ) throws -> [(id: RecordID, view: RecordJSON)] {
        let elements = try body.require("records", try body.array("records"))
        try calls.dependencies.limits.check(elements.count, of: "records")
        let zoneID = try caller.zoneID(body)
        return try elements.enumerated().map { index, element in
            let object: JSONValue =
                if case .string = element { ["recordName": element] } else { element }
            let reader = try JSONReader(object, path: "records[\(index)]")
            let id = RecordID(
                recordName: try reader.require(
                    "recordName", try reader.identifier("recordName")),
                zoneID: try caller.zoneID(reader, unless: zoneID))
            return (id, shown.showing(try reader.strings("desiredKeys")))
        }
    }
}

extension RelayRequest {
    /// The device that makes the call: `clientId` of the query or of the body, as CloudKit JS has
    /// it, or the header `X-Belfry-Device`.
    ///
    /// - Throws: 400 if it cannot be one's name.
    func deviceID(_ body: JSONReader) throws -> DeviceID? {
        for name in ["clientId", "clientID"] {
            if let id: DeviceID = try body.identifier(name) { return id }
            if let id: DeviceID = try parameter(name) { return id }
        }
        guard let text = header("X-Belfry-Device") else { return nil }
        guard let id = DeviceID(rawValue: text) else {
            throw APIError(.badRequest, "X-Belfry-Device: not \(DeviceID.rule)")
        }
        return id
    }
}
