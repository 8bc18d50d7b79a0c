import Fanout
import Foundation
import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// A follower that begins with a snapshot owes the same as one that begins with the registry.
@Suite struct SnapshotTests {
    private static let quiet = Logger.silent

    private func snapshots(of store: RelayStore) -> SnapshotStore {
        let count = Atomic<UInt64>(0)
        return SnapshotStore(
            SnapshotStore.Settings(stem: store.path + "-snapshot-", interval: .seconds(60)),
            storeIdentity: store.storeIdentity, store: store, now: { Fixtures.moment },
            clock: ContinuousClock(),
            makeIdentity: {
                UUIDBytes(high: 1, low: count.add(1, ordering: .relaxed).newValue)
            }, logger: Self.quiet)
    }

    private func follower(
        _ store: RelayStore, _ snapshots: SnapshotStore?, take: @escaping Follower.Taker
    ) -> Follower {
        let settings = ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"])
        return Follower(
            log: store, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: 7, clock: ContinuousClock(), settings: { _ in settings }, logger: Self.quiet,
            snapshots: snapshots,
            take: take)
    }

    /// Follows from `mark` to the head; returns the deliveries, and whether subscriptions were
    /// loaded from the registry.
    private func follow(
        _ store: RelayStore, from mark: ProgressMark, _ snapshots: SnapshotStore?
    ) async throws -> (deliveries: [OwedDelivery], loadedSubscriptions: Bool) {
        let collector = Collector(head: try await store.head())
        var follower = follower(store, snapshots) { try await collector.take($0) }
        var loaded = false
        try await follower.recover(at: mark, from: store, portion: 3) { stage in
            if case .subscriptions = stage { loaded = true }
        }
        do {
            try await follower.follow(from: mark)
        } catch is Collector.Finished {}
        return (await collector.deliveries, loaded)
    }

    /// Records a snapshot as of `position`; returns whether it was recorded.
    private func keep(_ store: RelayStore, at position: LogPosition) async throws -> Bool {
        let snapshots = snapshots(of: store)
        var follower = follower(store, nil) { _ in }
        try await follower.recover(at: ProgressMark(position: position, offset: 0), from: store)
        var writer = self.follower(store, snapshots) { _ in }
        try await writer.recover(at: ProgressMark(position: position, offset: 0), from: store)
        guard let image = writer.lastImage() else { return false }
        #expect(image.position == position)
        try await snapshots.finish(image, progress: position)
        return true
    }

    @Test(arguments: Seeds.all)
    func `a follower owes the same with every snapshot`(
        seed: UInt64
    ) async throws {
        var settings = StoreSettings.forTests
        // Without a tail in memory every entry comes from the file, as after a start.
        settings.tailEntries = 0
        let store = try TemporaryStore().open(settings)
        var world = World(seed: seed, in: store)
        try await world.fill(entries: 60)
        let head = try await store.head()
        // The first run makes the once claims, which end versions.
        _ = try await follow(store, from: .start, nil)
        for start in stride(from: 5, to: head.rawValue, by: 11) as StrideTo<UInt64> {
            try await store.forgetSnapshot()
            guard try await keep(store, at: LogPosition(start)) else { continue }
            for mark in stride(from: start, to: head.rawValue, by: 7) as StrideTo<UInt64> {
                let mark = ProgressMark(position: LogPosition(mark), offset: 0)
                let expected = try await follow(store, from: mark, nil).deliveries
                let found = try await follow(store, from: mark, snapshots(of: store)).deliveries
                #expect(found == expected, "snapshot at \(start), progress at \(mark.position)")
            }
            #expect(try await store.recordedSnapshot()?.position == LogPosition(start))
        }
        await store.close()
    }

    /// Ways to damage a snapshot; each is detected, and costs nothing but time.
    enum Damage: CaseIterable {
        case flippedByte, cutOff, missing, copiedFromBefore, aheadOfProgress, emptied
    }

    @Test(arguments: Damage.allCases)
    func `a damaged snapshot is forgotten`(damage: Damage) async throws {
        let store = try TemporaryStore().open()
        var world = World(seed: 5, in: store)
        try await world.fill(entries: 60)
        let head = try await store.head()
        let middle = LogPosition(head.rawValue / 2)
        var mark = ProgressMark(position: head, offset: 0)
        #expect(try await keep(store, at: middle))
        let path = try #require(paths(of: store).first)
        switch damage {
        case .flippedByte:
            var content = try Data(contentsOf: URL(filePath: path))
            content[content.count / 2] ^= 1
            try content.write(to: URL(filePath: path))
        case .cutOff:
            let content = try Data(contentsOf: URL(filePath: path))
            try content.dropLast(41).write(to: URL(filePath: path))
        case .emptied: try Data().write(to: URL(filePath: path))
        case .missing: try FileManager.default.removeItem(atPath: path)
        case .copiedFromBefore:
            let old = try Data(contentsOf: URL(filePath: path))
            #expect(try await keep(store, at: head))
            let current = try #require(paths(of: store).first)
            try old.write(to: URL(filePath: current))
        case .aheadOfProgress: mark = ProgressMark(position: LogPosition(3), offset: 0)
        }
        var follower = follower(store, snapshots(of: store)) { _ in }
        var loaded = 0
        try await follower.recover(at: mark, from: store) { stage in
            if case .devices(let count) = stage { loaded = count }
        }
        let expected = try await store.devices(activeAt: mark.position, after: 0, limit: 1000)
        #expect(loaded == expected.count)
        #expect(try await store.recordedSnapshot() == nil)
        #expect(paths(of: store) == [])
        await store.close()
    }

    private func paths(of store: RelayStore) -> [String] {
        let directory = URL(filePath: store.path).deletingLastPathComponent()
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
        return names.filter { $0.contains("-snapshot-") }.map {
            directory.appending(path: $0).path
        }
    }

    @Test func `a snapshot counts only once the progress has reached it`() async throws {
        let store = try TemporaryStore().open()
        var world = World(seed: 6, in: store)
        try await world.fill(entries: 40)
        let head = try await store.head()
        let snapshots = snapshots(of: store)
        var follower = follower(store, snapshots) { _ in }
        try await follower.recover(at: ProgressMark(position: head, offset: 0), from: store)
        let taken = follower.lastImage()
        let image = try #require(taken)
        try await snapshots.finish(image, progress: LogPosition(head.rawValue - 1))
        #expect(try await store.recordedSnapshot() == nil)
        #expect(paths(of: store) == [])
        try await snapshots.finish(image, progress: head)
        #expect(try await store.recordedSnapshot()?.position == head)
        #expect(paths(of: store).count == 1)
        await store.close()
    }

    @Test func `a snapshot that was overtaken by pruning never counts`() async throws {
        let store = try TemporaryStore().open()
        var world = World(seed: 8, in: store)
        try await world.fill(entries: 60)
        let start = LogPosition(10)
        let head = try await store.head()
        // The image is taken but not recorded yet while the progress goes on and pruning runs.
        let snapshots = snapshots(of: store)
        var follower = follower(store, snapshots) { _ in }
        try await follower.recover(at: ProgressMark(position: start, offset: 0), from: store)
        let taken = follower.lastImage()
        let image = try #require(taken)
        try await store.settle(
            SettledStep(from: .start, to: ProgressMark(position: head, offset: 0)))
        #expect(!(try await store.endings(after: start, upTo: head)).isEmpty)
        while try await store.pruneEndedVersions(upTo: head) > 0 {}
        try await snapshots.finish(image, progress: head)
        #expect(try await store.recordedSnapshot() == nil)
        #expect(paths(of: store) == [])
        // The next snapshot counts.
        #expect(try await keep(store, at: head))
        #expect(try await store.recordedSnapshot()?.position == head)
        await store.close()
    }

    /// A store that refuses to record snapshots.
    private struct ReadOnlyStore: StateSnapshots {
        let store: RelayStore

        func recordedSnapshot() async throws -> SnapshotRecord? {
            try await store.recordedSnapshot()
        }

        func record(_ snapshot: SnapshotRecord) async throws -> SnapshotRecording {
            throw StorageError.noRoom("the disk is full")
        }

        func forgetSnapshot() async throws { try await store.forgetSnapshot() }

        func endings(
            after start: LogPosition, upTo end: LogPosition
        ) async throws -> [VersionEnding] {
            try await store.endings(after: start, upTo: end)
        }
    }

    @Test func `a failure to record a snapshot is logged once a minute`() async throws {
        let store = try TemporaryStore().open()
        var world = World(seed: 6, in: store)
        try await world.fill(entries: 40)
        let head = try await store.head()
        let seconds = Mutex<Int64>(1000)
        let log = LogBook { "\($0.message)" }
        let snapshots = SnapshotStore(
            SnapshotStore.Settings(stem: store.path + "-snapshot-", interval: .seconds(60)),
            storeIdentity: store.storeIdentity, store: ReadOnlyStore(store: store),
            now: { Timestamp(seconds: seconds.withLock { $0 }) }, clock: ContinuousClock(),
            makeIdentity: { UUIDBytes(high: 1, low: 1) },
            logger: log.logger)
        var follower = follower(store, snapshots) { _ in }
        try await follower.recover(at: ProgressMark(position: head, offset: 0), from: store)
        let taken = follower.lastImage()
        snapshots.take(try #require(taken), pause: .zero)
        for _ in 0..<5 { try await snapshots.work(progress: head) }
        #expect(log.lines == ["could not record a snapshot"])
        seconds.withLock { $0 += 61 }
        for _ in 0..<5 { try await snapshots.work(progress: head) }
        #expect(log.lines.count == 2)
        await store.close()
    }

    @Test func `endings after a snapshot are kept until the next one`() async throws {
        let store = try TemporaryStore().open()
        var world = World(seed: 7, in: store)
        try await world.fill(entries: 60)
        let head = try await store.head()
        let start = LogPosition(10)
        #expect(try await keep(store, at: start))
        let endings = try await store.endings(after: start, upTo: head)
        #expect(!endings.isEmpty)
        try await store.settle(
            SettledStep(from: .start, to: ProgressMark(position: head, offset: 0)))
        while try await store.pruneEndedVersions(upTo: head) > 0 {}
        #expect(try await store.endings(after: start, upTo: head) == endings)
        try await store.forgetSnapshot()
        while try await store.pruneEndedVersions(upTo: head) > 0 {}
        #expect(try await store.endings(after: start, upTo: head) == [])
        await store.close()
    }
}
