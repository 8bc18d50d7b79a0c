import RelayModel
import Storage

/// CloudKit's calls on zones.
struct ZoneRoutes: Sendable {
    private let calls: RecordCalls

    init(_ dependencies: RelayDependencies) {
        calls = RecordCalls(dependencies)
    }

    var routes: [RelayRoute] {
        let prefix = RecordCalls.prefix
        return [
            RelayRoute(.client, "GET", "\(prefix)/zones/list", respond: list),
            // Some clients post an empty object.
            RelayRoute(
                .client, "POST", "\(prefix)/zones/list", effect: .reads,
                respond: list),
            RelayRoute(
                .client, "POST", "\(prefix)/zones/lookup", effect: .reads,
                respond: lookup),
            RelayRoute(.client, "POST", "\(prefix)/zones/modify", respond: modify),
            RelayRoute(
                .client, "POST", "\(prefix)/zones/changes", effect: .reads,
                respond: changes),
        ]
    }

    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let caller = try await calls.caller(of: request)
        let zones = try await ZoneFeed(calls, caller).live()
        return answer(zones.map { .object($0.json(for: caller)) }, request)
    }

    private func lookup(_ request: RelayRequest) async throws -> RelayAnswer {
        let caller = try await calls.caller(of: request)
        let body = try request.jsonBody()
        let elements = try body.zones()
        try calls.dependencies.limits.check(elements.count, of: "zones")
        let live = try await ZoneFeed(calls, caller).live()
        let entries = try elements.map { reader -> JSONValue in
            let zoneID = try caller.listedZoneID(reader)
            if let zone = live.first(where: { $0.zoneID == zoneID }) {
                return .object(zone.json(for: caller))
            }
            return APIError.zoneNotFound(zoneID).entry(
                zoneID: caller.json(zoneID), uuid: request.uuid)
        }
        return answer(entries, request)
    }

    private func changes(_ request: RelayRequest) async throws -> RelayAnswer {
        let caller = try await calls.caller(of: request)
        let body = try request.optionalJSONBody()
        // The service knows `metaSyncToken`; clients written by Apple's text say `syncToken`.
        let (zones, token) = try await ZoneFeed(calls, caller).changes(
            since: try body.string("metaSyncToken") ?? body.string("syncToken"))
        return RelayAnswer(json: [
            "zones": .array(zones), "metaSyncToken": .string(token),
            "syncToken": .string(token), "moreComing": false,
        ]).keepingUserToken(of: request)
    }

    // MARK: modify

    private enum Kind: String, CaseIterable {
        case create, delete
    }

    private func modify(_ request: RelayRequest) async throws -> RelayAnswer {
        let caller = try await calls.caller(of: request)
        guard caller.place.database == .private else {
            throw APIError(
                .badRequest, "zones are created and deleted in the private database only")
        }
        let body = try request.jsonBody()
        let elements = try body.require("operations", try body.array("operations"))
        try calls.dependencies.limits.check(elements.count, of: "operations")
        var entries: [JSONValue] = []
        for (index, element) in elements.enumerated() {
            entries.append(
                try await entry(element, path: "operations[\(index)]", caller, request))
        }
        return answer(entries, request)
    }

    private func entry(
        _ element: JSONValue, path: String, _ caller: RecordCaller, _ request: RelayRequest
    ) async throws -> JSONValue {
        let reader = try JSONReader(element, path: path)
        let kind: Kind = try reader.require("operationType", try reader.choice("operationType"))
        let zone = try reader.require("zone", try reader.reader("zone"))
        let zoneID = try caller.listedZoneID(zone)
        do {
            guard zoneID != .default, zoneID.ownerRecordName == nil else {
                throw APIError(
                    .accessDenied,
                    "only zones of your own, and not the default zone, are "
                        + "created and deleted")
            }
            switch kind {
            case .create: return try await create(zoneID, caller)
            case .delete: return try await delete(zoneID, caller, request)
            }
        } catch {
            return ErrorMapping(error).apiError.entry(
                zoneID: caller.json(zoneID), uuid: request.uuid)
        }
    }

    private func create(_ zoneID: ZoneID, _ caller: RecordCaller) async throws -> JSONValue {
        let zones = try await calls.shadow.createZones([zoneID], in: caller.place)
        guard let zone = zones.first else {
            throw APIError(.internalError, "the zone was not created")
        }
        return .object(zone.json(for: caller))
    }

    private func delete(
        _ zoneID: ZoneID, _ caller: RecordCaller, _ request: RelayRequest
    ) async throws -> JSONValue {
        guard
            try await calls.shadow.deleteZone(
                zoneID, in: caller.place, by: caller.editor, at: request.receivedAt)
        else { throw APIError.zoneNotFound(zoneID) }
        return ["zoneID": caller.json(zoneID), "deleted": true]
    }

    private func answer(_ entries: [JSONValue], _ request: RelayRequest) -> RelayAnswer {
        RelayAnswer(json: ["zones": .array(entries)]).keepingUserToken(of: request)
    }
}

/// The zones of a database as a caller sees them.
struct ZoneFeed {
    private let calls: RecordCalls
    private let caller: RecordCaller

    init(_ calls: RecordCalls, _ caller: RecordCaller) {
        self.calls = calls
        self.caller = caller
    }

    /// The zones that are there, the default one first; in the shared database only those of
    /// others.
    func live() async throws -> [ZoneMark] {
        let zones = try await calls.shadow.zones(of: caller.place).filter { !$0.isDeleted }
        guard caller.place.database != .shared else { return zones }
        let standard =
            zones.first { $0.zoneID == .default }
            ?? ZoneMark(zoneID: .default, position: .start, edit: 0, isDeleted: false)
        return [standard] + zones.filter { $0.zoneID != .default }
    }

    /// What changed since a token, and the token of now.
    ///
    /// It holds two numbers, because records have places in the log and zones have not.
    func changes(since token: String?) async throws -> (zones: [JSONValue], token: String) {
        let since = try caller.numbers(token, count: 2, of: "zones")
        let zones = try await calls.shadow.zones(of: caller.place)
        let changed = zones.filter {
            $0.position.rawValue > since[0] || $0.edit > since[1]
        }
        let entries = changed.filter { !$0.isDeleted || token != nil }.map { zone -> JSONValue in
            guard zone.isDeleted else { return .object(zone.json(for: caller)) }
            return ["zoneID": caller.json(zone.zoneID), "deleted": true]
        }
        let last = [
            zones.map(\.position.rawValue).max() ?? 0, zones.map(\.edit).max() ?? 0,
        ]
        return (
            entries, caller.token([max(last[0], since[0]), max(last[1], since[1])], of: "zones")
        )
    }
}

extension JSONReader {
    /// The elements of `zones`: an array of dictionaries or names, or a single one of them.
    ///
    /// - Throws: `JSONContractError` if there is none.
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
    /// CloudKit's zone dictionary.
    func json(for caller: RecordCaller) -> JSONObject {
        [
            "zoneID": caller.json(zoneID),
            "syncToken": .string(
                caller.token([position.rawValue], of: "zone/\(zoneID.sealName)")),
            "atomic": .bool(zoneID != .default),
        ]
    }
}

extension APIError {
    /// This error in the place of one zone.
    func entry(zoneID: JSONValue, uuid: String) -> JSONValue {
        var object: JSONObject = ["zoneID": zoneID]
        object.members.append(contentsOf: json(uuid: uuid).members)
        return .object(object)
    }
}
