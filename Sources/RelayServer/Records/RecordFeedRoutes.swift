import RelayModel
import Storage

/// CloudKit's calls on many records: queries, and changes since a token.
struct RecordFeedRoutes: Sendable {
    let calls: RecordCalls
    /// Admits queries.
    let queries: QueryAdmission
    let sessions: any SessionRegistry
    /// Returns the given number of unpredictable bytes.
    let randomBytes: @Sendable (Int) -> [UInt8]

    var routes: [RelayRoute] {
        return [
            calls.route(
                "POST", "/records/query", patience: .watched,
                effect: .reads, respond: query),
            calls.route(
                "POST", "/records/changes", effect: .reads,
                respond: recordChanges),
            calls.route(
                "POST", "/changes/zone", effect: .reads,
                respond: zoneChanges),
            calls.route(
                "POST", "/changes/database", effect: .reads,
                respond: databaseChanges),
        ]
    }

    private func query(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        let body = try request.jsonBody()
        let shown = try RecordJSON(body)
        let markers = MarkerSeal(
            secret: try await sessions.sessionSecret(), store: calls.store, chance: randomBytes)
        let query = try await calls.clients.bodies.reading(
            request, of: caller.place.container, by: caller.party
        ) {
            try RecordQuery(body, for: caller, markers: markers)
        }
        if let zoneID = query.zoneID { try await check(zoneID, caller) }
        let (records, marker) = try await queries.run(
            caller.party, of: caller.place.container, places: caller.queryPlaces
        ) { allowance in
            try await query.page(
                from: calls.shadow, for: caller, at: request.receivedAt, within: allowance)
        }
        var answer: JSONObject = [
            "records": .array(records.map { .object(shown.record($0, for: caller)) })
        ]
        answer["continuationMarker"] = marker.map { .string($0) }
        return await calls.answers.answer(.object(answer))
    }

    private func recordChanges(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        let body = try request.jsonBody()
        let question = try ZoneQuestion(
            caller.zoneID(body), body, ZoneWishes(body), caller)
        return try await calls.lists.turn(of: caller.place.container, by: caller.party) {
            let feed = try await answers(to: [question], caller)[0].get()
            return await calls.answers.answer(.object(feed))
        }
    }

    /// Answers the newer call for changes: several zones, each with its own token.
    private func zoneChanges(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        let body = try request.jsonBody()
        let wishes = try ZoneWishes(body)
        let zones = try body.zones()
        try calls.limits.check(zones.count, of: "zones")
        let zoneIDs = try zones.map { try caller.listedZoneID($0) }
        let read = zip(zoneIDs, zones).map { zoneID, zone -> Result<ZoneQuestion, any Error> in
            Result {
                try ZoneQuestion(zoneID, zone, wishes.overridden(by: zone), caller)
            }
        }
        return try await calls.lists.turn(of: caller.place.container, by: caller.party) {
            var rest = try await answers(to: read.compactMap { try? $0.get() }, caller)[...]
            let entries = zip(zoneIDs, read).map { zoneID, question -> JSONValue in
                let answer = question.flatMap { _ in rest.removeFirst() }
                return entry(answer, of: zoneID, caller, request)
            }
            return await calls.answers.answer(["zones": .array(entries)])
        }
    }

    private func entry(
        _ answer: Result<JSONObject, any Error>, of zoneID: ZoneID, _ caller: RecordCaller,
        _ request: RelayRequest
    ) -> JSONValue {
        var entry: JSONObject = ["zoneID": caller.json(zoneID)]
        switch answer {
        case .success(let feed):
            entry.members.append(contentsOf: feed.members.filter { $0.name != "zoneID" })
        case .failure(let error):
            entry.members.append(
                contentsOf: ErrorMapping(error).apiError.json(uuid: request.uuid).members)
        }
        return .object(entry)
    }

    /// Returns the changes in each zone, as far as they fit one page; one zone's error does not
    /// affect the others.
    private func answers(
        to questions: [ZoneQuestion], _ caller: RecordCaller
    ) async throws -> [Result<JSONObject, any Error>] {
        let found = try await calls.shadow.recordChanges(
            in: questions.map(\.change), of: caller.place, bytes: Limits.maximumPageBytes)
        let records = found.reduce(0) { $0 + $1.page.elements.count }
        return try await calls.answers.forming(records) {
            zip(questions, found).map { question, changes in
                Result { try question.answer(changes, caller) }
            }
        }
    }

    /// Returns the zones that have changed.
    private func databaseChanges(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        let body = try request.optionalJSONBody()
        let token = try body.string("syncToken")
        return try await calls.lists.turn(of: caller.place.container, by: caller.party) {
            let feed = try await ZoneFeed(calls, caller).changes(since: token)
            return RelayAnswer(json: [
                "zones": .array(feed.zones), "syncToken": .string(feed.token),
                "moreComing": .bool(feed.hasMore),
            ])
        }
    }

    /// Refuses a zone that does not exist; the default one always does.
    private func check(_ zoneID: ZoneID, _ caller: RecordCaller) async throws {
        guard zoneID != .default else { return }
        let zone = try await calls.shadow.zone(zoneID, of: caller.place)
        guard zone?.isDeleted == false else {
            throw APIError.zoneNotFound(zoneID)
        }
    }
}
