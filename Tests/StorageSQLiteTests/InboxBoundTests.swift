import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Testing

/// An inbox keeps about as many notifications as allowed, whatever is marked as read in between.
@Suite struct InboxBoundTests {
    private static let ann = InboxOwner(
        container: Sample.container, user: Sample.identifier("ann"))

    private static func entry(_ position: UInt64) -> InboxEntry {
        InboxEntry(
            owner: ann, position: LogPosition(position), subscriptionSerial: 1,
            subscriptionID: Sample.identifier("s1"), database: .public,
            notificationID: UUIDBytes(high: 7, low: position), originDevice: nil,
            payload: Array("{}".utf8), at: Sample.moment(Int64(position)))
    }

    private static func positions(_ store: RelayStore) async throws -> [UInt64] {
        let request = InboxRequest(owner: ann, database: nil, limit: 1000)
        guard case .page(let page, _, _) = try await store.notifications(request) else {
            Issue.record("no page")
            return []
        }
        return page.map(\.position.rawValue)
    }

    /// Each notification takes a number, and marking it as read takes another one.
    ///
    /// So all notifications have odd numbers here. Regression: the size was checked only at numbers
    /// divisible by 64, so that such an inbox grew without a bound.
    @Test(arguments: [(32, 32...34), (5, 5...5), (1, 1...1)])
    func `an inbox whose entries are read at once stays bounded:`(
        perUser: Int, kept: ClosedRange<Int>
    ) async throws {
        var settings = StoreSettings.forTests
        settings.inboxPerUser = perUser
        let home = try TemporaryStore()
        let store = try await home.openReady(settings)
        for position in 1...UInt64(80) {
            try await store.keep([Self.entry(position)])
            let marked = try await store.markNotificationsRead(
                [UUIDBytes(high: 7, low: position)], of: Self.ann, at: Sample.moment(100))
            #expect(marked.count == 1)
        }
        let left = try await Self.positions(store)
        #expect(kept.contains(left.count), "\(left)")
        // The newest notifications are the ones kept.
        #expect(left == Array((1...UInt64(80)).suffix(left.count)))
        await store.close()
    }

    @Test func `a small inbox keeps its full number of notifications`() async throws {
        var settings = StoreSettings.forTests
        settings.inboxPerUser = 3
        let home = try TemporaryStore()
        let store = try await home.openReady(settings)
        try await store.keep((1...7).map(Self.entry))
        #expect(try await Self.positions(store) == [5, 6, 7])
        await store.close()
    }
}
