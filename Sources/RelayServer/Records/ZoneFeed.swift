import RelayModel
import Storage

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
