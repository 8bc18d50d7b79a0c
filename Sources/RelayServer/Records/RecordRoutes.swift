import RelayModel
import Storage

/// CloudKit's calls on single records: modify and lookup.
struct RecordRoutes: Sendable {
    let calls: RecordCalls
    let log: any ShardLog
    let turns: ContainerTurns
    let identifiers: RandomIdentifiers

    var routes: [RelayRoute] {
        [
            calls.route("POST", "/records/modify", respond: modify),
            calls.route(
                "POST", "/records/lookup", effect: .reads,
                respond: lookup),
        ]
    }

    private func modify(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        let body = try request.jsonBody()
        let modification = try RecordModification(
            body, by: caller, from: try request.recordOrigin(body),
            limits: calls.limits, stored: try await storedTypes(body, caller),
            assignName: { identifiers.uuid().uppercased() })
        var outcomes: [RecordEditOutcome] = []
        if let edits = modification.edits, !edits.isEmpty {
            outcomes = try await modify(edits, modification, caller, at: request.receivedAt)
        }
        try modification.requireUser(outcomes: outcomes, for: caller)
        let entries = modification.entries(outcomes: outcomes, for: caller, uuid: request.uuid)
        return RelayAnswer(json: ["records": .array(entries)])
    }

    /// Changes records.
    ///
    /// Independent operations are applied in parts if their changes may be expensive, so that
    /// changes of others come between them. The same holds for what is deleted along with their
    /// records.
    private func modify(
        _ edits: [RecordEdit], _ modification: RecordModification, _ caller: RecordCaller,
        at now: Timestamp
    ) async throws -> [RecordEditOutcome] {
        // A single operation is applied completely or not at all, whatever the request says.
        guard modification.atomicity == .independent || edits.count == 1 else {
            return try await modify(
                part: edits, .allOrNothing, modification.additions, within: .atOnce, caller,
                at: now
            ).outcomes
        }
        var parts = RecordParts(edits)
        var time = turns.partedTime
        while let part = parts.next(most: turns.portion(of: caller.place.container)) {
            do {
                try time.check()
                // A client that has gone repeats an unfinished deletion.
                if parts.place != nil { try Task.checkCancellation() }
                let room = CascadeRoom(
                    part: turns.portion(of: caller.place.container), from: parts.place)
                parts.note(
                    try await modify(
                        part: part, .independent, modification.additions, within: room, caller,
                        at: now))
                time.note()
            } catch StorageError.bounded(let bound, let reason) where parts.isBegun {
                parts.end(.bounded(bound, reason: reason))
            }
        }
        return parts.outcomes
    }

    private func modify(
        part edits: [RecordEdit], _ atomicity: EditAtomicity, _ additions: [RecordTypeDefinition],
        within room: CascadeRoom, _ caller: RecordCaller, at now: Timestamp
    ) async throws -> RecordEditsApplied {
        try await turns.run(
            of: caller.place.container, changes: edits.count, besides: \.gone,
            // A deleted record has no position any more; the head of the log is high enough.
            last: { applied in
                guard applied.gone > 0 || applied.outcomes.contains(where: \.isApplied) else {
                    return nil
                }
                return try await log.head()
            }
        ) {
            try await calls.shadow.modify(
                edits, in: caller.place, by: caller.editor, atomicity: atomicity,
                additions: additions, within: room, at: now)
        }
    }

    /// Returns the types of the records whose operations leave them out.
    private func storedTypes(
        _ body: JSONReader, _ caller: RecordCaller
    ) async throws -> [RecordID: RecordType] {
        let ids = RecordModification.untypedRecords(body, caller)
            .prefix(calls.limits.operations)
        guard !ids.isEmpty else { return [:] }
        // Reading more than one request may change is pointless.
        let stored = try await calls.shadow.records(
            named: Array(ids), in: caller.place, bytes: 4 * Limits.maximumPageBytes
        ).records
        return Self.meant(stored.filter(caller.mayRead), by: caller).mapValues(\.recordType)
    }

    /// Returns the record that each name means.
    private static func meant(
        _ records: [ShadowRecord], by caller: RecordCaller
    ) -> [RecordID: ShadowRecord] {
        Dictionary(records.map { ($0.recordID, $0) }) { first, second in
            first.isMeant(over: second, by: caller.user, in: caller.place.database)
                ? first : second
        }
    }

    private func lookup(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        let body = try request.jsonBody()
        let shown = try RecordJSON(body)
        let wanted = try recordIDs(body, caller, shown)
        return try await calls.lists.turn(of: caller.place.container, by: caller.party) {
            try await answer(wanted, request, caller)
        }
    }

    /// Returns the requested records, as far as they fit one answer.
    private func answer(
        _ wanted: [(id: RecordID, view: RecordJSON)], _ request: RelayRequest,
        _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        // A record that is named many times is read once, and answered as often as it fits.
        var named: Set<RecordID> = []
        let (all, unread) = try await calls.shadow.records(
            named: wanted.map(\.id).filter { named.insert($0).inserted }, in: caller.place,
            bytes: Limits.maximumPageBytes)
        let found = all.filter(caller.mayRead)
        let meant = Self.meant(found, by: caller)
        var page = AnswerPage(limit: wanted.count)
        let entries = wanted.map { id, view -> JSONValue in
            if let record = meant[id], !page.isFull {
                let entry = JSONValue.object(view.record(record, for: caller))
                page.take(entry)
                return entry
            }
            let isLeftOut = meant[id] != nil || unread.contains(id)
            let error = isLeftOut ? APIError.answerIsFull : .noRecord(id.recordName)
            return error.entry(
                "recordName", .string(id.recordName.rawValue), uuid: request.uuid)
        }
        return await calls.answers.answer(["records": .array(entries)])
    }

    /// Parses dictionaries with `recordName` and optionally `desiredKeys`, or bare names.
    private func recordIDs(
        _ body: JSONReader, _ caller: RecordCaller, _ shown: RecordJSON
    ) throws -> [(id: RecordID, view: RecordJSON)] {
        let elements = try body.require("records", try body.array("records"))
        try calls.limits.check(elements.count, of: "records")
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

/// The origin of changes of records.
struct RecordOrigin: Sendable, Hashable {
    /// The device that is not told about them.
    var device: DeviceID?
    /// Whether it is a page in a browser; the service stamps the changes of pages with no device.
    var isPage = false
}

extension RelayRequest {
    /// Returns the origin of the changes that the call makes.
    ///
    /// - Throws: 400 if the device's name is not valid.
    func recordOrigin(_ body: JSONReader) throws -> RecordOrigin {
        RecordOrigin(
            device: try deviceID(body),
            isPage: query["ckjsVersion"] != nil || query["ckjsBuildVersion"] != nil)
    }

    /// Returns the device that makes the call: `clientId` of the query or body, as in CloudKit JS,
    /// or the header `X-Belfry-Device`.
    ///
    /// - Throws: 400 if the name is not valid.
    func deviceID(_ body: JSONReader) throws -> DeviceID? {
        for name in ["clientId", "clientID"] {
            if let id: DeviceID = try body.identifier(name) { return id }
            if let id: DeviceID = try parameter(name) { return id }
        }
        guard let text = header("X-Belfry-Device") else { return nil }
        guard let id = DeviceID(rawValue: text) else {
            throw APIError(.badRequest, "X-Belfry-Device: is not \(DeviceID.rule)")
        }
        return id
    }
}

extension RecordEditOutcome {
    /// Whether the operation changed a record.
    var isApplied: Bool {
        switch self {
        case .saved, .deleted: true
        case .refused, .undone: false
        }
    }
}
