import RelayModel
import Storage

/// CloudKit's calls on many records: query, and what changed since a token.
struct RecordFeedRoutes: Sendable {
    private let calls: RecordCalls

    init(_ dependencies: RelayDependencies) {
        calls = RecordCalls(dependencies)
    }

    var routes: [RelayRoute] {
        let prefix = RecordCalls.prefix
        return [
            RelayRoute(.client, "POST", "\(prefix)/records/query", respond: query),
            RelayRoute(.client, "POST", "\(prefix)/records/changes", respond: recordChanges),
            RelayRoute(.client, "POST", "\(prefix)/changes/zone", respond: zoneChanges),
            RelayRoute(.client, "POST", "\(prefix)/changes/database", respond: databaseChanges),
        ]
    }

    private func query(_ request: RelayRequest) async throws -> RelayAnswer {
        let caller = try await calls.caller(of: request)
        let body = try request.jsonBody()
        let shown = try RecordJSON(body)
        let query = try RecordQuery(body, for: caller)
        if let zoneID = query.zoneID { try await check(zoneID, caller) }
        let (records, marker) = try await query.page(
            from: calls.shadow, for: caller, at: request.receivedAt)
        var answer: JSONObject = [
            "records": .array(records.map { .object(shown.record($0, for: caller)) })
        ]
        answer["continuationMarker"] = marker.map { .string($0) }
        return RelayAnswer(json: .object(answer)).keepingUserToken(of: request)
    }

    private func recordChanges(_ request: RelayRequest) async throws -> RelayAnswer {
        let caller = try await calls.caller(of: request)
        let body = try request.jsonBody()
        let feed = try await feed(caller.zoneID(body), body, caller, RecordJSON(body))
        return RelayAnswer(json: .object(feed)).keepingUserToken(of: request)
    }

    /// The newer call: several zones, each with its own token.
    private func zoneChanges(_ request: RelayRequest) async throws -> RelayAnswer {
        let caller = try await calls.caller(of: request)
        let body = try request.jsonBody()
        let shown = try RecordJSON(body)
        let zones = try body.zones()
        try calls.dependencies.limits.check(zones.count, of: "zones")
        var answers: [JSONValue] = []
        for zone in zones {
            let zoneID = try caller.listedZoneID(zone)
            var entry: JSONObject = ["zoneID": caller.json(zoneID)]
            do {
                let view = shown.showing(try zone.strings("desiredKeys"))
                entry.members.append(
                    contentsOf: try await feed(zoneID, zone, caller, view).members.filter {
                        $0.name != "zoneID"
                    })
            } catch {
                entry.members.append(
                    contentsOf: ErrorMapping(error).apiError.json(uuid: request.uuid).members)
            }
            answers.append(.object(entry))
        }
        return RelayAnswer(json: ["zones": .array(answers)]).keepingUserToken(of: request)
    }

    /// What changed in the zone since the token in `body`.
    private func feed(
        _ zoneID: ZoneID, _ body: JSONReader, _ caller: RecordCaller, _ shown: RecordJSON
    ) async throws -> JSONObject {
        try await check(zoneID, caller)
        guard try body.bool("reverse") != true else {
            throw body.failure("reverse", "the relay tells changes in their order only")
        }
        let part = "zone/\(zoneID.sealName)"
        let since = try caller.numbers(try body.string("syncToken"), count: 1, of: part)[0]
        let limit = try body.resultsLimit()
        let types = try body.strings("desiredRecordTypes").map { Set($0) }
        let changed = try await calls.shadow.recordChanges(
            in: zoneID, of: caller.place, after: LogPosition(since), limit: limit + 1)
        try await checkMemory(of: zoneID, since: LogPosition(since), caller)
        let page = changed.prefix(limit)
        let records = page.filter {
            caller.mayRead($0) && types?.contains($0.recordType.rawValue) != false
        }
        let last = page.last?.position.rawValue ?? since
        return [
            "zoneID": caller.json(zoneID),
            "records": .array(records.map { .object(shown.record($0, for: caller)) }),
            "syncToken": .string(caller.token([last], of: part)),
            "moreComing": .bool(changed.count > limit),
        ]
    }

    /// Which zones have something new.
    private func databaseChanges(_ request: RelayRequest) async throws -> RelayAnswer {
        let caller = try await calls.caller(of: request)
        let body = try request.optionalJSONBody()
        let (zones, token) = try await ZoneFeed(calls, caller).changes(
            since: try body.string("syncToken"))
        return RelayAnswer(json: [
            "zones": .array(zones), "syncToken": .string(token), "moreComing": false,
        ]).keepingUserToken(of: request)
    }

    /// Refuses a token from before what the zone still remembers of deleted records.
    ///
    /// It is asked after the records were read, so that what went in between is noticed.
    private func checkMemory(
        of zoneID: ZoneID, since position: LogPosition, _ caller: RecordCaller
    ) async throws {
        guard position > .start else { return }
        let zones = try await calls.shadow.zones(of: caller.place)
        guard let zone = zones.first(where: { $0.zoneID == zoneID }), position < zone.prunedTo
        else { return }
        throw NotificationToken.expired(
            "it is older than what is remembered of deleted records; begin again without one")
    }

    /// Refuses a zone that is not there; the default one always is.
    private func check(_ zoneID: ZoneID, _ caller: RecordCaller) async throws {
        guard zoneID != .default else { return }
        let zones = try await calls.shadow.zones(of: caller.place)
        guard zones.contains(where: { $0.zoneID == zoneID && !$0.isDeleted }) else {
            throw APIError.zoneNotFound(zoneID)
        }
    }
}
