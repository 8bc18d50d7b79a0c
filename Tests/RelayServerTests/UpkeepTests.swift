import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import RelayServer

/// The work beside the walk continues, whatever fails in it.
struct UpkeepTests {
    /// An error of another type than the store's, such as a database server's.
    private struct OddFailure: Error {}

    @Test func `no kind of failure ends a loop`() async throws {
        let clock = TestClock()
        var world = World.real
        world.clock = clock
        let store = try TemporaryStore().open()
        let upkeep = Upkeep(
            store, settings: Upkeep.Settings(), world: world, logger: Logger(label: "test"),
            progress: { .start })
        let count = Mutex(0)
        let loop = Task {
            try await upkeep.every(.seconds(1)) {
                count.withLock { $0 += 1 }
                throw OddFailure()
            }
        }
        let goesOn = await clock.advance(by: .seconds(1)) { count.withLock { $0 } >= 3 }
        #expect(goesOn)
        loop.cancel()
        await #expect(throws: CancellationError.self) { try await loop.value }
        await store.close()
    }

    @Test func `a failing step does not keep other tables from being pruned`() async throws {
        let done = Mutex<[Int]>([])
        await #expect(throws: OddFailure.self) {
            try await Upkeep.each(
                { done.withLock { $0.append(1) } }, { throw OddFailure() },
                { done.withLock { $0.append(3) } })
        }
        #expect(done.withLock { $0 } == [1, 3])
        await #expect(throws: CancellationError.self) {
            try await Upkeep.each(
                { throw CancellationError() }, { done.withLock { $0.append(2) } })
        }
        #expect(done.withLock { $0 } == [1, 3])
    }

    @Test func `an end waits for no more than one portion of a deletion`() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let count = Mutex(0)
        let deleting = Task {
            try await Upkeep.all {
                begin.yield()
                // Waits until the end has come.
                for await _ in ends { break }
                return count.withLock { count in
                    count += 1
                    return count < 100 ? 1 : 0
                }
            }
        }
        for await _ in begun { break }
        deleting.cancel()
        end.finish()
        await #expect(throws: CancellationError.self) { try await deleting.value }
        #expect(count.withLock { $0 } == 1)
    }

    private enum Outage: Error {
        case unreachable, locked
    }

    /// Returns upkeep with the test's clock, which logs into a `LogBook`.
    private static func upkeep(
        of store: RelayStore, _ clock: TestClock, _ log: LogBook
    ) -> Upkeep {
        var world = World.real
        world.clock = clock
        return Upkeep(
            store, settings: Upkeep.Settings(), world: world, logger: log.logger,
            progress: { .start })
    }

    /// Two lines a second, for as long as a database is away, would fill a log.
    @Test func `a lasting failure is logged once a minute, and another one at once`()
        async throws
    {
        let clock = TestClock()
        let store = try TemporaryStore().open()
        let log = LogBook()
        let upkeep = Self.upkeep(of: store, clock, log)
        let count = Mutex(0)
        let loop = Task {
            try await upkeep.every(.seconds(1)) {
                let turn = count.withLock { count in
                    count += 1
                    return count
                }
                throw turn <= 30 ? Outage.unreachable : Outage.locked
            }
        }
        let goesOn = await clock.advance(by: .seconds(1)) { count.withLock { $0 } >= 100 }
        #expect(goesOn)
        // The lines come in turns 1, 31 and 91.
        #expect(log.lines.count == 3)
        loop.cancel()
        await #expect(throws: CancellationError.self) { try await loop.value }
        await store.close()
    }

    /// A host that answers nothing has this effect: each attempt takes as long as connecting may.
    @Test func `a minute is measured by the clock however long each failure takes`() async throws {
        let clock = TestClock()
        let store = try TemporaryStore().open()
        let log = LogBook()
        let upkeep = Self.upkeep(of: store, clock, log)
        let count = Mutex(0)
        let loop = Task {
            try await upkeep.every(.seconds(1)) {
                try await clock.sleep(for: .seconds(9))
                count.withLock { $0 += 1 }
                throw Outage.unreachable
            }
        }
        // The line of the seventh turn has been written once the eighth turn comes.
        let goesOn = await clock.advance(by: .seconds(1)) { count.withLock { $0 } >= 8 }
        #expect(goesOn)
        #expect(log.lines.count >= 2)
        loop.cancel()
        await #expect(throws: CancellationError.self) { try await loop.value }
        await store.close()
    }

    @Test func `pruned rows are counted, including the audit log's`() async throws {
        let clock = TestClock()
        var world = World.real
        world.clock = clock
        let store = try TemporaryStore().open()
        _ = try await store.beginAudit(
            AuditEntry(at: Timestamp(seconds: 0), caller: "main", method: "PUT", path: "/x"))
        let metrics = PrometheusMetrics()
        let upkeep = Upkeep(
            store, settings: Upkeep.Settings(), world: world, logger: Logger(label: "test"),
            metrics: metrics, progress: { .start })
        let loop = Task { try await upkeep.run() }
        let isCounted = await clock.advance(by: .seconds(1)) {
            metrics.render().contains(#"belfry_pruned_total{table="auditEntry"} 1"#)
        }
        #expect(isCounted)
        loop.cancel()
        await #expect(throws: CancellationError.self) { try await loop.value }
        await store.close()
    }

    /// The file's own bounds are those of its log and of the disk.
    @Test func `a bound on the size of a database does not apply to a file`() async throws {
        let store = try TemporaryStore().open()
        var settings = Upkeep.Settings()
        settings.databaseBytes = 1
        let upkeep = Upkeep(
            store, settings: settings, world: .real, logger: Logger(label: "test"),
            progress: { .start })
        try await upkeep.watch()
        #expect(store.footprint.fileBytes > 1)
        #expect(store.gate.reached == [:])
        await store.close()
    }

    /// On a server the free disk space is unknown, which is not the same as none.
    @Test func `an unknown number of a store is not shown as zero`() {
        let metrics = PrometheusMetrics()
        let meter = UpkeepMeter(metrics)
        let backlog = Backlog(retries: 0, ranges: 0, rangeSubscriptions: 0, quarantined: 0)
        func show(_ footprint: StoreFootprint) {
            meter.show(
                UpkeepMeter.Watch(
                    lag: 0, backlog: backlog, footprint: footprint, memory: 1, reached: []))
        }
        show(StoreFootprint(fileBytes: 1, walBytes: 0, freeBytes: nil))
        #expect(!metrics.render().contains("belfry_storage_free_bytes"))
        #expect(!metrics.render().contains("belfry_store_owner"))
        var known = StoreFootprint(fileBytes: 1, walBytes: 0, freeBytes: 7)
        known.nodes = 2
        show(known)
        #expect(metrics.render().contains("belfry_storage_free_bytes 7\n"))
        #expect(metrics.render().contains("belfry_store_owner 1\n"))
        #expect(metrics.render().contains("belfry_store_nodes 2\n"))
    }

    @Test func `the difference of the accounts is kept for readers`() async throws {
        let store = try TemporaryStore().open()
        let standing = AccountsStanding()
        #expect(standing.difference == nil)
        let upkeep = Upkeep(
            store, settings: Upkeep.Settings(), world: World.real, logger: Logger(label: "test"),
            standing: standing, progress: { .start })
        try await upkeep.audit()
        #expect(standing.difference == 0)
        let account = DeliveryAccount(
            container: Sample.container, owed: 3, delivered: 1, pending: 0, deadLetters: 0,
            dropped: 0)
        standing.note([account])
        #expect(standing.difference == 2)
        await store.close()
    }
}
