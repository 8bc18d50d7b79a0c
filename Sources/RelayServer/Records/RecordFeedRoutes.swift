import RelayModel
import Storage

/// CloudKit's calls on many records: query, and what changed since a token.
struct RecordFeedRoutes: Sendable {
    let calls: RecordCalls
    /// Lets queries in.
    let queries: QueryAdmission
    let sessions: any SessionRegistry
    /// Makes unpredictable bytes, as many as it is asked for.
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
        return RelayAnswer(json: .object(answer))
    }

    private func recordChanges(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        let body = try request.jsonBody()
        let zoneID = try caller.zoneID(body)
        let shown = try RecordJSON(body)
        return try await calls.lists.turn(of: caller.place.container, by: caller.party) {
            var room = Limits.maximumPageBytes
            let limit = try body.resultsLimit()
            let feed = try await feed(zoneID, body, limit, caller, shown, &room)
            return RelayAnswer(json: .object(feed))
        }
    }

    /// The newer call: several zones, each with its own token.
    private func zoneChanges(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        let body = try request.jsonBody()
        let shown = try RecordJSON(body)
        let zones = try body.zones()
        try calls.limits.check(zones.count, of: "zones")
        // Beside the zones it is each one's that has none.
        let limit = try body.resultsLimit()
        return try await calls.lists.turn(of: caller.place.container, by: caller.party) {
            let answers = try await feeds(zones, limit, request, caller, shown)
            return RelayAnswer(json: ["zones": .array(answers)])
        }
    }

    /// The feeds of several zones, which share the bytes of one page.
    private func feeds(
        _ zones: [JSONReader], _ limit: Int, _ request: RelayRequest, _ caller: RecordCaller,
        _ shown: RecordJSON
    ) async throws -> [JSONValue] {
        var answers: [JSONValue] = []
        var room = Limits.maximumPageBytes
        for zone in zones {
            let zoneID = try caller.listedZoneID(zone)
            var entry: JSONObject = ["zoneID": caller.json(zoneID)]
            do {
                let view = shown.showing(try zone.strings("desiredKeys"))
                let limit = try zone.resultsLimit(unless: limit)
                entry.members.append(
                    contentsOf: try await feed(zoneID, zone, limit, caller, view, &room).members
                        .filter { $0.name != "zoneID" })
            } catch {
                entry.members.append(
                    contentsOf: ErrorMapping(error).apiError.json(uuid: request.uuid).members)
            }
            answers.append(.object(entry))
        }
        return answers
    }

    /// What changed in the zone since the token in `body`, as far as there is room.
    private func feed(
        _ zoneID: ZoneID, _ body: JSONReader, _ limit: Int, _ caller: RecordCaller,
        _ shown: RecordJSON, _ room: inout Int
    ) async throws -> JSONObject {
        try await check(zoneID, caller)
        guard try body.bool("reverse") != true else {
            throw body.failure("reverse", "the relay tells changes in their order only")
        }
        let part = "zone/\(zoneID.sealName)"
        let numbers = try caller.numbers(try body.string("syncToken"), count: 2, of: part)
        let since = numbers[0]
        // What had been forgotten when a client began with nothing it never had.
        let known = try await since > 0 ? LogPosition(numbers[1]) : memory(of: zoneID, caller)
        let types = try body.strings("desiredRecordTypes").map {
            Set($0.compactMap(RecordType.init(rawValue:)))
        }
        var page = Page<ShadowRecord>([], hasMore: true)
        if room > 0 {
            page = try await calls.shadow.recordChanges(
                in: zoneID, of: caller.place, after: LogPosition(since),
                PageBounds(rows: limit, bytes: room))
        }
        if since > 0 {
            try await checkMemory(of: zoneID, since: max(LogPosition(since), known), caller)
        }
        let records = page.elements.filter {
            caller.mayRead($0) && types?.contains($0.recordType) != false
        }
        let entries = records.map { JSONValue.object(shown.record($0, for: caller)) }
        room -= page.bytes
        let last = page.elements.last?.position.rawValue ?? since
        return [
            "zoneID": caller.json(zoneID),
            "records": .array(entries),
            "syncToken": .string(caller.token([last, known.rawValue], of: part)),
            "moreComing": .bool(page.hasMore),
        ]
    }

    /// Which zones have something new.
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

    /// Refuses a token from before what the zone still remembers of records that have gone.
    ///
    /// It is asked after the records were read, so that what went in between is noticed.
    private func checkMemory(
        of zoneID: ZoneID, since position: LogPosition, _ caller: RecordCaller
    ) async throws {
        guard try await position < memory(of: zoneID, caller) else { return }
        throw APIError.tokenExpired(
            "it is older than what is remembered of records that have gone; begin again without "
                + "one")
    }

    /// Up to where the zone may have forgotten what went.
    private func memory(
        of zoneID: ZoneID, _ caller: RecordCaller
    ) async throws -> LogPosition {
        try await calls.shadow.zone(zoneID, of: caller.place)?.prunedTo ?? .start
    }

    /// Refuses a zone that is not there; the default one always is.
    private func check(_ zoneID: ZoneID, _ caller: RecordCaller) async throws {
        guard zoneID != .default else { return }
        let zone = try await calls.shadow.zone(zoneID, of: caller.place)
        guard zone?.isDeleted == false else {
            throw APIError.zoneNotFound(zoneID)
        }
    }
}
