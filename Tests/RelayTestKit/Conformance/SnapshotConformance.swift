import RelayModel
import Storage
import Testing

/// The contract of ``Storage/StateSnapshots`` and ``Storage/ActiveVersions``.
package enum SnapshotConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase(
            "only the snapshot recorded last counts, also after a restart", check: recording),
        ConformanceCase(
            "endings after the snapshot are found, and kept until another one is recorded",
            check: endings),
        ConformanceCase(
            "a snapshot older than the last pruning never counts", check: outdated),
        ConformanceCase(
            "endings since a position are found, wherever it is in the log", check: since),
        ConformanceCase("the versions active at a position can always be read", check: activity),
        ConformanceCase(
            "a shard's identity survives a restart, and no other store has it", check: identity),
    ]

    private static let ann = Sample.owner("ann")

    private static func identity(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeStore()
        let identity = store.shardIdentity
        let other = try await factory.makeStore()
        #expect(other.shardIdentity != identity)
        let reopened = try await factory.reopen(store)
        #expect(reopened.shardIdentity == identity)
    }

    private static func record(_ number: UInt64, at position: LogPosition) -> SnapshotRecord {
        SnapshotRecord(
            identity: UUIDBytes(high: 1, low: number), position: position,
            savedAt: Sample.moment(Int64(number)))
    }

    private static func save(
        _ id: String, in store: any ConformingStore
    ) async throws -> SubscriptionVersion {
        let outcomes = try await store.edit(
            [.create(Sample.subscription(id, artist: id, of: ann))], of: ann,
            atomicity: .independent, at: Sample.moment(1))
        guard case .saved(let version)? = outcomes.first else {
            Issue.record("not saved: \(outcomes)")
            throw CancellationError()
        }
        return version
    }

    private static func delete(
        _ version: SubscriptionVersion, in store: any ConformingStore
    ) async throws {
        _ = try await store.edit(
            [.delete(version.subscription.id)], of: ann, atomicity: .independent,
            at: Sample.moment(2))
    }

    /// Moves the progress to the head, and returns it.
    private static func settle(_ store: any ConformingStore) async throws -> LogPosition {
        let head = try await store.head()
        try await store.settle(
            SettledStep(
                from: try await store.mark(), to: ProgressMark(position: head, offset: 0)))
        return head
    }

    private static func prune(_ store: any ConformingStore) async throws -> Int {
        try await store.prune(Retention(), at: Sample.moment(60)).endedVersions
    }

    private static func recording(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        #expect(try await store.recordedSnapshot() == nil)
        for number in [1, 2] as [UInt64] {
            let outcome = try await store.record(record(number, at: .start))
            #expect(outcome == .recorded)
        }
        let again = try await factory.reopen(store)
        #expect(try await again.recordedSnapshot() == record(2, at: .start))
        try await again.forgetSnapshot()
        #expect(try await again.recordedSnapshot() == nil)
    }

    private static func endings(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let version = try await save("a", in: store)
        let phone = try await store.register(
            Sample.device("phone", of: "ann", token: 1), at: Sample.moment(1))
        let taken = try await settle(store)
        _ = try await store.record(record(1, at: taken))
        try await delete(version, in: store)
        _ = try await store.forgetDevice(
            phone.device.id, of: phone.device.owner, in: Sample.container, at: Sample.moment(2))
        let head = try await settle(store)
        let endings = try await store.endings(after: taken, upTo: head)
        #expect(
            Set(endings) == [
                VersionEnding(.subscription, serial: version.serial, of: Sample.container),
                VersionEnding(.device, serial: phone.serial, of: Sample.container),
            ])
        #expect(try await store.endings(after: head, upTo: head) == [])
        #expect(try await prune(store) == 0)
        _ = try await store.record(record(2, at: head))
        #expect(try await prune(store) == 2)
    }

    private static func outdated(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let version = try await save("a", in: store)
        let taken = try await settle(store)
        try await delete(version, in: store)
        let head = try await settle(store)
        #expect(try await prune(store) == 1)
        let outcome = try await store.record(record(1, at: taken))
        #expect(outcome == .outdated(prunedTo: head))
        #expect(try await store.recordedSnapshot() == nil)
    }

    private static func since(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let version = try await save("a", in: store)
        let phone = try await store.register(
            Sample.device("phone", of: "ann", token: 1), at: Sample.moment(1))
        _ = try await settle(store)
        let place = try await store.settledPlace()
        try await delete(version, in: store)
        _ = try await store.forgetDevice(
            phone.device.id, of: phone.device.owner, in: Sample.container, at: Sample.moment(2))
        let head = try await settle(store)
        let ended = [
            VersionEnding(.subscription, serial: version.serial, of: Sample.container),
            VersionEnding(.device, serial: phone.serial, of: Sample.container),
        ]
        #expect(try await store.endings(since: place, upTo: head) == .all(ended))
        #expect(try await prune(store) == 2)
        #expect(try await store.endings(since: place, upTo: head) == .all(ended))
        let now = try await store.settledPlace()
        #expect(now.position == head && now != place)
        #expect(try await store.endings(since: now, upTo: head) == .all([]))
        // Once the log is pruned, the endings that were kept for its sake are pruned too.
        var retention = Retention()
        retention.logAge = .zero
        _ = try await store.prune(retention, at: Sample.moment(60))
        #expect(try await store.endings(since: place, upTo: head) == .unknown(.pruned))
        #expect(try await store.endings(since: now, upTo: head) == .all([]))
        var other = now
        other.store = UUIDBytes(high: 1, low: 1)
        #expect(try await store.endings(since: other, upTo: head) == .unknown(.otherStore))
        other = now
        other.position = LogPosition(head.rawValue + 1)
        #expect(try await store.endings(since: other, upTo: head) == .unknown(.otherHistory))
    }

    private static func activity(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let first = try await save("a", in: store)
        let second = try await save("b", in: store)
        try await delete(first, in: store)
        let deletion = try await store.head()
        func serials(at position: LogPosition) async throws -> [UInt64] {
            try await store.subscriptions(activeAt: position, after: 0, limit: 10).map(\.serial)
        }
        #expect(try await serials(at: .start) == [])
        #expect(try await serials(at: first.activation) == [first.serial])
        #expect(try await serials(at: second.activation) == [first.serial, second.serial])
        #expect(try await serials(at: deletion) == [second.serial])
        let named = try await store.subscriptions([second.serial, first.serial, 1 << 40])
        #expect(named == [second, first])
        #expect(try await store.subscriptions([]) == [])
    }
}
