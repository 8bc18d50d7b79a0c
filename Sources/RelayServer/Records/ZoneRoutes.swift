import RelayModel
import Storage

/// CloudKit's calls on zones.
struct ZoneRoutes: Sendable {
    let calls: RecordCalls
    let log: any ShardLog
    let turns: ContainerTurns

    var routes: [RelayRoute] {
        return [
            calls.route("GET", "/zones/list", respond: list),
            // Some clients post an empty object.
            calls.route(
                "POST", "/zones/list", effect: .reads,
                respond: list),
            calls.route(
                "POST", "/zones/lookup", effect: .reads,
                respond: lookup),
            calls.route("POST", "/zones/modify", respond: modify),
            calls.route(
                "POST", "/zones/changes", effect: .reads,
                respond: changes),
        ]
    }

    private func list(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        let marker = try request.zoneMarker()
        return try await calls.lists.turn(of: caller.place.container, by: caller.party) {
            let page = try await ZoneFeed(calls, caller).live(after: marker)
            var json: JSONObject = [
                "zones": .array(page.elements.map { .object($0.json(for: caller)) })
            ]
            // CloudKit has no pages here, and few clients will ever need one.
            if page.hasMore, let last = page.elements.last {
                json["continuationMarker"] = .string(last.zoneID.marker)
            }
            return RelayAnswer(json: .object(json))
        }
    }

    private func lookup(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        let body = try request.jsonBody()
        let elements = try body.zones()
        try calls.limits.check(elements.count, of: "zones")
        let zoneIDs = try elements.map { try caller.listedZoneID($0) }
        let zones = try await ZoneFeed(calls, caller).zones(zoneIDs)
        let entries = zip(zoneIDs, zones).map { zoneID, zone -> JSONValue in
            if let zone { return .object(zone.json(for: caller)) }
            return APIError.zoneNotFound(zoneID).entry(
                "zoneID", caller.json(zoneID), uuid: request.uuid)
        }
        return answer(entries, request)
    }

    private func changes(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        let body = try request.optionalJSONBody()
        // The service uses `metaSyncToken`; clients that follow Apple's text use `syncToken`.
        let token = try body.string("metaSyncToken") ?? body.string("syncToken")
        return try await calls.lists.turn(of: caller.place.container, by: caller.party) {
            let feed = try await ZoneFeed(calls, caller).changes(since: token)
            return RelayAnswer(json: [
                "zones": .array(feed.zones), "metaSyncToken": .string(feed.token),
                "syncToken": .string(feed.token), "moreComing": .bool(feed.hasMore),
            ])
        }
    }

    // MARK: modify

    private enum Kind: String, CaseIterable {
        case create, delete
    }

    private func modify(
        _ request: RelayRequest, _ caller: RecordCaller
    ) async throws -> RelayAnswer {
        guard caller.place.database == .private else {
            throw APIError(
                .badRequest, "zones can be created and deleted only in the private database")
        }
        let body = try request.jsonBody()
        // All are parsed before the first is applied, so a refused request changes nothing.
        let operations = try body.operations(within: calls.limits).enumerated()
            .map { index, element in
                try operation(element, path: "operations[\(index)]", caller)
            }
        var entries: [JSONValue] = []
        var time = turns.partedTime
        var rest = operations[...]
        while !rest.isEmpty {
            let created = rest.prefix { $0.0 == .create }.map(\.1)
            if let zones = await createTogether(created, within: &time, caller) {
                entries += zones
                rest = rest.dropFirst(zones.count)
                continue
            }
            // Zones that were not created together are created one by one; a deletion is always
            // separate.
            for (kind, zoneID) in rest.prefix(max(1, created.count)) {
                entries.append(await entry(kind, zoneID, within: &time, caller, request))
            }
            rest = rest.dropFirst(max(1, created.count))
        }
        return answer(entries, request)
    }

    private func operation(
        _ element: JSONValue, path: String, _ caller: RecordCaller
    ) throws -> (Kind, ZoneID) {
        let reader = try JSONReader(element, path: path)
        let kind: Kind = try reader.require("operationType", try reader.choice("operationType"))
        let zone = try reader.require("zone", try reader.reader("zone"))
        return (kind, try caller.listedZoneID(zone))
    }

    private func entry(
        _ kind: Kind, _ zoneID: ZoneID, within time: inout PartedTime, _ caller: RecordCaller,
        _ request: RelayRequest
    ) async -> JSONValue {
        do {
            guard Self.isMade(zoneID) else {
                throw APIError(
                    .accessDenied,
                    "you can create and delete only your own zones, and not the default zone")
            }
            switch kind {
            case .create:
                try time.check()
                let zone = try await create(zoneID, caller)
                time.note()
                return zone
            case .delete: return try await delete(zoneID, within: &time, caller, request)
            }
        } catch {
            return ErrorMapping(error).apiError.entry(
                "zoneID", caller.json(zoneID), uuid: request.uuid)
        }
    }

    /// Creates several zones in one transaction; returns `nil`, and creates none, if there are
    /// fewer than two or one of them is refused.
    private func createTogether(
        _ zoneIDs: [ZoneID], within time: inout PartedTime, _ caller: RecordCaller
    ) async -> [JSONValue]? {
        guard zoneIDs.count > 1, zoneIDs.allSatisfy(Self.isMade) else { return nil }
        do {
            try time.check()
            let zones = try await calls.shadow.createZones(zoneIDs, in: caller.place)
            time.note()
            return zones.map { .object($0.json(for: caller)) }
        } catch {
            return nil
        }
    }

    /// Returns whether a zone is of a kind that clients create and delete.
    private static func isMade(_ zoneID: ZoneID) -> Bool {
        zoneID != .default && zoneID.ownerRecordName == nil
    }

    private func create(_ zoneID: ZoneID, _ caller: RecordCaller) async throws -> JSONValue {
        let zones = try await calls.shadow.createZones([zoneID], in: caller.place)
        guard let zone = zones.first else {
            throw APIError(.internalError, "the zone was not created")
        }
        return .object(zone.json(for: caller))
    }

    /// The number of records that one transaction deletes while other changes wait.
    private static let deletedAtATime = 32

    /// Deletes a zone in portions, within the share of its container.
    ///
    /// A zone may have a million records, and each deletion is a change. A client that is told to
    /// come back, for want of a turn or of time, continues with its next call.
    private func delete(
        _ zoneID: ZoneID, within time: inout PartedTime, _ caller: RecordCaller,
        _ request: RelayRequest
    ) async throws -> JSONValue {
        let container = caller.place.container
        var begun: ZoneDeletionPlace?
        while true {
            try time.check()
            let limit = min(Self.deletedAtATime, turns.portion(of: container))
            let place = begun
            let deletion = try await turns.run(
                of: container, changes: limit, last: { _ in try await log.head() }
            ) {
                try await calls.shadow.deleteZone(
                    zoneID, in: caller.place, by: caller.editor, limit: limit, from: place,
                    at: request.receivedAt)
            }
            time.note()
            switch deletion {
            case .unknown: throw APIError.zoneNotFound(zoneID)
            case .begun(let reached):
                try Task.checkCancellation()
                begun = reached
            case .done: return ["zoneID": caller.json(zoneID), "deleted": true]
            }
        }
    }

    private func answer(_ entries: [JSONValue], _ request: RelayRequest) -> RelayAnswer {
        RelayAnswer(json: ["zones": .array(entries)])
    }
}

extension ZoneID {
    /// The text that names the zone as the last one of a page.
    var marker: String {
        Base64.encode(Array("\(ownerRecordName?.rawValue ?? "")\n\(zoneName)".utf8))
    }
}

extension RelayRequest {
    /// Returns the zone after which a page of `zones/list` continues, from the body or the query.
    ///
    /// - Throws: 400 if the marker is not valid, or the body no JSON object.
    func zoneMarker() throws -> ZoneID? {
        var text = query["continuationMarker"]
        if text == nil { text = try optionalJSONBody().string("continuationMarker") }
        guard let text else { return nil }
        let parts = Base64.decode(text)
            .map { $0.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) }
        guard let parts, parts.count == 2,
            let name = String(utf8: parts[1]),
            let owner = String(utf8: parts[0]),
            let zoneID = ZoneID(
                zoneName: name, ownerRecordName: owner.isEmpty ? nil : UserID(rawValue: owner))
        else {
            throw APIError(
                .badRequest,
                "continuationMarker: it is not from an answer of this call; start again without it")
        }
        return zoneID
    }
}

extension JSONReader {
    /// Returns the elements of `zones`: an array of dictionaries or names, or a single one.
    ///
    /// - Throws: `JSONContractError` if the member is missing.
    func zones() throws(JSONContractError) -> [JSONReader] {
        let value = try require("zones", value("zones"))
        let elements: [JSONValue] =
            if case .array(let elements) = value { elements } else { [value] }
        var readers: [JSONReader] = []
        for (index, element) in elements.enumerated() {
            let object: JSONValue =
                if case .string = element { ["zoneName": element] } else { element }
            readers.append(try JSONReader(object, path: path(of: "zones[\(index)]")))
        }
        return readers
    }
}

extension ZoneMark {
    /// Returns CloudKit's zone dictionary.
    func json(for caller: RecordCaller) -> JSONObject {
        [
            "zoneID": caller.json(zoneID),
            "syncToken": .string(
                caller.token(
                    [position.rawValue, prunedTo.rawValue], of: "zone/\(zoneID.sealName)")),
            "atomic": .bool(zoneID != .default),
        ]
    }
}
