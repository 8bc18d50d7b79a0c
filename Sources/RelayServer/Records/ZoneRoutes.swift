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
            // CloudKit has no pages here; few will ever see one.
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
        // The service knows `metaSyncToken`; clients written by Apple's text say `syncToken`.
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
                .badRequest, "zones are created and deleted in the private database only")
        }
        let body = try request.jsonBody()
        // All are read before the first is carried out: a request that is refused changes nothing.
        let operations = try body.operations(within: calls.limits).enumerated()
            .map { index, element in
                try operation(element, path: "operations[\(index)]", caller)
            }
        var entries: [JSONValue] = []
        var time = turns.partedTime
        for (kind, zoneID) in operations {
            entries.append(await entry(kind, zoneID, within: &time, caller, request))
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
            guard zoneID != .default, zoneID.ownerRecordName == nil else {
                throw APIError(
                    .accessDenied,
                    "only zones of your own, and not the default zone, are "
                        + "created and deleted")
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

    private func create(_ zoneID: ZoneID, _ caller: RecordCaller) async throws -> JSONValue {
        let zones = try await calls.shadow.createZones([zoneID], in: caller.place)
        guard let zone = zones.first else {
            throw APIError(.internalError, "the zone was not created")
        }
        return .object(zone.json(for: caller))
    }

    /// Records of a zone that one transaction deletes, with which it keeps the writer from others.
    private static let deletedAtATime = 32

    /// A zone may have a million records, each of which is a change that is followed: they go some
    /// at a time, by the share of their container.
    ///
    /// Who is told to come later, for want of a turn or because it has taken as long as whoever
    /// asks waits for an answer, goes on then.
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

/// The zones of a database as a caller sees them.
struct ZoneFeed {
    private let calls: RecordCalls
    private let caller: RecordCaller

    init(_ calls: RecordCalls, _ caller: RecordCaller) {
        self.calls = calls
        self.caller = caller
    }

    /// A page of the zones that are there, the default one first; in the shared database only those
    /// of others.
    func live(after marker: ZoneID?) async throws -> Page<ZoneMark> {
        var page = try await calls.shadow.zonePage(
            of: caller.place, after: marker, PageBounds(rows: Limits.maximumZonesPerDatabase))
        guard caller.place.database != .shared else { return page }
        page.elements.removeAll { $0.zoneID == .default }
        if marker == nil { page.elements.insert(try await standard(), at: 0) }
        return page
    }

    /// Zones that are there; the default one always is, but in the shared database.
    func zones(_ zoneIDs: [ZoneID]) async throws -> [ZoneMark?] {
        let known = try await calls.shadow.zones(zoneIDs, of: caller.place)
        return zip(zoneIDs, known).map { zoneID, zone in
            if let zone, !zone.isDeleted { return zone }
            return zoneID == .default && caller.place.database != .shared ? Self.untouched : nil
        }
    }

    private func standard() async throws -> ZoneMark {
        let known = try await calls.shadow.zone(.default, of: caller.place)
        guard let known, !known.isDeleted else { return Self.untouched }
        return known
    }

    /// The default zone before anything has changed in it.
    private static let untouched = ZoneMark(
        zoneID: .default, position: .start, edit: 0, isDeleted: false)

    /// Zones that changed, and a token for what changes afterwards.
    struct Changes {
        var zones: [JSONValue]
        var token: String
        var hasMore: Bool
    }

    /// The zones of one page of changes.
    private static let zonesPerPage = 1000

    /// What changed since a token, a page of it, and the token to go on with.
    func changes(since token: String?) async throws -> Changes {
        var place = try ZoneFeedPlace(token, of: caller)
        let until = try await end(of: place)
        place.until = until
        var page = try await calls.shadow.zoneChanges(
            of: caller.place, since: place.since, after: place.edit,
            PageBounds(rows: Self.zonesPerPage))
        try await checkMemory(since: place.since)
        // What was edited since the first page is for the next changes, so that the pages end.
        if let first = page.elements.firstIndex(where: { $0.edit > until.edit }) {
            page.elements.removeSubrange(first...)
            page.hasMore = false
        }
        // Who begins has nothing that could be deleted.
        let isBeginning = place.since == .start
        let entries = page.elements.filter { !$0.isDeleted || !isBeginning }
            .map { zone -> JSONValue in
                guard zone.isDeleted else { return .object(zone.json(for: caller)) }
                return ["zoneID": caller.json(zone.zoneID), "deleted": true]
            }
        place.edit = page.elements.last?.edit ?? place.edit
        return Changes(
            zones: entries, token: page.hasMore ? place.token(of: caller) : place.end(of: caller),
            hasMore: page.hasMore)
    }

    /// Refuses a token from before what the database still remembers of deleted zones.
    ///
    /// It is asked after the zones were read, so that what went in between is noticed.
    private func checkMemory(since: ZoneHead) async throws {
        guard since != .start else { return }
        let head = try await calls.shadow.zoneHead(of: caller.place)
        guard since.edit < head.prunedEdit else { return }
        throw APIError.tokenExpired(
            "it is older than what is remembered of deleted zones; begin again without one")
    }

    /// How far the pages go: as far as the zones had come when the first was asked for.
    private func end(of place: ZoneFeedPlace) async throws -> ZoneHead {
        if let until = place.until { return until }
        return try await calls.shadow.zoneHead(of: caller.place)
    }
}

/// Where a client is in the changes of the zones of a database.
///
/// There are two numbers to it, because records have places in the log and zones have not; within a
/// page's sequel three more: which zone was last, and what is to be the token of the end. What
/// changes while the pages are fetched is beyond that, and comes with the next changes.
struct ZoneFeedPlace {
    var since: ZoneHead
    var edit: UInt64 = 0
    var until: ZoneHead?

    private static let part = "zones"
    private static let sequel = "zones/sequel"

    /// Reads a token; without one it is the beginning.
    ///
    /// - Throws: 400 if it is another one's.
    init(_ token: String?, of caller: RecordCaller) throws(APIError) {
        if let token, let numbers = try Self.sequel(token, of: caller) {
            since = ZoneHead(position: LogPosition(numbers[0]), edit: numbers[1])
            edit = numbers[2]
            until = ZoneHead(position: LogPosition(numbers[3]), edit: numbers[4])
        } else {
            let numbers = try caller.numbers(token, count: 2, of: Self.part)
            since = ZoneHead(position: LogPosition(numbers[0]), edit: numbers[1])
        }
    }

    /// The numbers of a token for the next page; `nil` if it is none.
    private static func sequel(
        _ token: String, of caller: RecordCaller
    ) throws(APIError) -> [UInt64]? {
        do {
            return try caller.numbers(token, count: 5, of: sequel)
        } catch {
            guard error.details["changeTokenExpired"] == true else { return nil }
            throw error
        }
    }

    /// The token for the next page.
    func token(of caller: RecordCaller) -> String {
        let until = until ?? since
        return caller.token(
            [
                since.position.rawValue, since.edit, edit, until.position.rawValue, until.edit,
            ], of: Self.sequel)
    }

    /// The token for what changes after the last page.
    func end(of caller: RecordCaller) -> String {
        let until = until ?? since
        return caller.token(
            [
                max(since.position, until.position).rawValue, max(since.edit, until.edit),
            ], of: Self.part)
    }
}

extension ZoneID {
    /// Names the zone as the last one of a page.
    var marker: String {
        Base64.encode(Array("\(ownerRecordName?.rawValue ?? "")\n\(zoneName)".utf8))
    }
}

extension RelayRequest {
    /// After which zone a page of `zones/list` goes on, in the body or in the query.
    ///
    /// - Throws: 400 if it is none.
    func zoneMarker() throws -> ZoneID? {
        var text = query["continuationMarker"]
        if text == nil, let reader = try? optionalJSONBody() {
            text = try reader.string("continuationMarker")
        }
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
                .badRequest, "continuationMarker: it was not made here; begin without one")
        }
        return zoneID
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
                caller.token(
                    [position.rawValue, prunedTo.rawValue], of: "zone/\(zoneID.sealName)")),
            "atomic": .bool(zoneID != .default),
        ]
    }
}
