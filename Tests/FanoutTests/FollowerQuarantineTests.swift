import Fanout
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// A store's log in which one entry cannot be read.
private final class ScratchedLog: ShardLog {
    private let store: RelayStore
    private let scratch: UnreadableEntry
    private let aside = Mutex<[UnreadableEntry]>([])

    init(_ store: RelayStore, scratch: UnreadableEntry) {
        self.store = store
        self.scratch = scratch
    }

    var quarantined: [UnreadableEntry] { aside.withLock { $0 } }

    func entries(after position: LogPosition, limit: Int) async throws -> [LogEntry] {
        let entries = try await store.entries(after: position, limit: limit)
        if entries.first?.position == scratch.position { throw StorageError.unreadable(scratch) }
        return Array(entries.prefix { $0.position != scratch.position })
    }

    func followedEntries(
        after position: LogPosition, limit: Int
    ) async throws -> [FollowedEntry] {
        try await entries(after: position, limit: limit).map(FollowedEntry.init)
    }

    func quarantine(_ entry: UnreadableEntry, at now: Timestamp) async throws {
        aside.withLock { $0.append(entry) }
        try await store.quarantine(entry, at: now)
    }

    func head() async throws -> LogPosition { try await store.head() }

    func waitForGrowth(beyond position: LogPosition) async throws {
        try await store.waitForGrowth(beyond: position)
    }
}

/// An unreadable entry delays nothing else, and is never skipped silently.
@Suite struct FollowerQuarantineTests {
    /// Follows a log of edits and changes in which one entry cannot be read.
    private func follow(
        scratched position: UInt64, isChange: Bool
    ) async throws -> (records: [String], quarantined: [UnreadableEntry]) {
        let store = try TemporaryStore().open()
        let settings = ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"])
        try await store.save(settings, at: Fixtures.moment)
        _ = try await store.register(Fixtures.device("phone"), at: Fixtures.moment)
        try await post(1, to: store)
        var subscription = Fixtures.subscription("s")
        subscription.notificationInfo.alertBody = "hello"
        _ = try await store.edit(
            [.create(subscription)],
            of: SubscriptionOwner(
                container: Fixtures.container, database: .public,
                user: Fixtures.identifier("alice")), atomicity: .independent, at: Fixtures.moment)
        for number in 2...4 { try await post(number, to: store) }
        // The log has a device at 1, a change at 2, a subscription at 3, and changes at 4 to 6.
        let scratch = UnreadableEntry(
            position: LogPosition(position), isChange: isChange, reason: "scratched")
        let log = ScratchedLog(store, scratch: scratch)
        let batches = try await store.handedOver { take in
            Follower(
                log: log, progress: store,
                identity: DeliveryIdentity(store: store.storeIdentity), indexSeed: 7,
                clock: ContinuousClock(), settings: { _ in settings },
                logger: .silent,
                take: take)
        }
        await store.close()
        return (batches.flatMap(\.deliveredPositions), log.quarantined)
    }

    private func post(_ number: Int, to store: RelayStore) async throws {
        _ = try await store.append(
            [ChangeToAppend(Fixtures.change(.create, "a\(number)"), key: nil)],
            container: Fixtures.container, source: Fixtures.identifier("test"),
            at: Fixtures.moment)
    }

    @Test(arguments: [4, 5, 6] as [UInt64])
    func `a change that cannot be read is set aside, and the others are delivered`(
        position: UInt64
    ) async throws {
        let result = try await follow(scratched: position, isChange: true)
        let others = ["4", "5", "6"].filter { $0 != "\(position)" }
        #expect(result.records == others)
        #expect(result.quarantined.map(\.position.rawValue) == [position])
    }

    @Test(arguments: [1, 3] as [UInt64])
    func `an edit that cannot be read is loaded from the registry`(
        position: UInt64
    ) async throws {
        let result = try await follow(scratched: position, isChange: false)
        #expect(result.records == ["4", "5", "6"])
        #expect(result.quarantined == [])
    }
}
