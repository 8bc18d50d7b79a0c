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

    /// Returns a page of the existing zones, the default one first; in the shared database only
    /// those of other users.
    func live(after marker: ZoneID?) async throws -> Page<ZoneMark> {
        var page = try await calls.shadow.zonePage(
            of: caller.place, after: marker, PageBounds(rows: Limits.maximumZonesPerDatabase))
        guard caller.place.database != .shared else { return page }
        page.elements.removeAll { $0.zoneID == .default }
        if marker == nil { page.elements.insert(try await standard(), at: 0) }
        return page
    }

    /// Returns the existing zones among these; the default one always exists, except in the shared
    /// database.
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

    /// The default zone before any change in it.
    private static let untouched = ZoneMark(
        zoneID: .default, position: .start, edit: 0, isDeleted: false)

    /// The zones that changed, and a token for later changes.
    struct Changes {
        var zones: [JSONValue]
        var token: String
        var hasMore: Bool
    }

    /// The number of zones on one page of changes.
    private static let zonesPerPage = 1000

    /// Returns a page of the changes since a token, and the token to continue with.
    func changes(since token: String?) async throws -> Changes {
        var place = try ZoneFeedPlace(token, of: caller)
        let until = try await end(of: place)
        place.until = until
        var page = try await calls.shadow.zoneChanges(
            of: caller.place, since: place.since, after: place.edit,
            PageBounds(rows: Self.zonesPerPage))
        try await checkMemory(since: place.since)
        // Edits since the first page belong to the next changes, so that the pages come to an end.
        if let first = page.elements.firstIndex(where: { $0.edit > until.edit }) {
            page.elements.removeSubrange(first...)
            page.hasMore = false
        }
        // A client that begins has nothing that could be deleted.
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

    /// Refuses a token from before the deletions of zones that the database remembers.
    ///
    /// This is checked after the zones were read, so that deletions forgotten in between are
    /// noticed.
    private func checkMemory(since: ZoneHead) async throws {
        guard since != .start else { return }
        let head = try await calls.shadow.zoneHead(of: caller.place)
        guard since.edit < head.prunedEdit else { return }
        throw APIError.tokenExpired(
            "it is older than the deleted zones that the relay still remembers; start again "
                + "without a syncToken")
    }

    /// Returns the end of the pages: the head of the zones when the first page was requested.
    private func end(of place: ZoneFeedPlace) async throws -> ZoneHead {
        if let until = place.until { return until }
        return try await calls.shadow.zoneHead(of: caller.place)
    }
}

/// The place of a client among the changes of a database's zones.
///
/// It has two numbers, because records have positions in the log and zones have not. Between pages
/// there are three more: the last zone, and the place of the end. What changes while the pages are
/// fetched is after that end, and comes with the next changes.
struct ZoneFeedPlace {
    var since: ZoneHead
    var edit: UInt64 = 0
    var until: ZoneHead?

    private static let part = "zones"
    private static let sequel = "zones/sequel"

    /// Parses a token; without one, the place is the beginning.
    ///
    /// - Throws: 400 if it was made for something else.
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

    /// Returns the numbers of a token for the next page; `nil` for other tokens.
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

    /// Returns the token for the next page.
    func token(of caller: RecordCaller) -> String {
        let until = until ?? since
        return caller.token(
            [
                since.position.rawValue, since.edit, edit, until.position.rawValue, until.edit,
            ], of: Self.sequel)
    }

    /// Returns the token for the changes after the last page.
    func end(of caller: RecordCaller) -> String {
        let until = until ?? since
        return caller.token(
            [
                max(since.position, until.position).rawValue, max(since.edit, until.edit),
            ], of: Self.part)
    }
}
