import Foundation
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import LogShipping

/// A store whose backups go to a destination in memory, with a clock that the test moves.
final class ShippingRig: Sendable {
    let home: TemporaryStore
    let clock: TestClock
    let destination: MemoryDestination
    let spool: LogSpool
    let store: RelayStore
    let shipper: LogShipper

    /// Opens the store at `home`, which may hold one already.
    init(
        at home: TemporaryStore? = nil, clock: TestClock = TestClock(),
        to destination: MemoryDestination = MemoryDestination(), spoolBytes: Int = 1 << 30,
        checkpointPages: Int = 12,
        adjust: (inout LogShipper.Settings) -> Void = { _ in }
    ) async throws {
        self.home = try home ?? TemporaryStore(in: .memory)
        self.clock = clock
        self.destination = destination
        var bounds = LogSpool.Settings()
        bounds.reserveBytes = 0
        bounds.bytes = spoolBytes
        bounds.segmentBytes = 10 * 4120
        spool = try LogSpool(of: self.home.path, settings: bounds, now: { clock.moment })
        var settings = StoreSettings.forTests
        settings.checkpointPages = checkpointPages
        settings.checkpointPagesBesideOthers = checkpointPages
        store = try RelayStore.open(path: self.home.path, settings: settings, spool: spool)
        var shipping = LogShipper.Settings()
        shipping.partBytes = 8 * 4096
        adjust(&shipping)
        shipper = LogShipper(
            store, spool: spool, to: destination, settings: shipping, clock: clock,
            now: { clock.moment },
            randomBytes: { count in (0..<count).map { _ in .random(in: 0...255) } },
            logger: .silent)
    }

    /// Creates the container that changes are appended to.
    func furnish() async throws {
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
    }

    /// Furnishes the store, appends `count` changes, and returns the round that has shipped its
    /// first copy.
    func firstRound(after count: Int) async throws -> ShippingRound {
        try await furnish()
        try await append(count)
        var round = ShippingRound(shipper)
        try await round.run()
        return round
    }

    /// Appends `count` changes, one commit each, and advances the clock by a second after each.
    ///
    /// Returns the moments at which they were acknowledged.
    @discardableResult func append(_ count: Int) async throws -> [Timestamp] {
        var moments: [Timestamp] = []
        for _ in 0..<count {
            let number = try await store.head().rawValue + 1
            _ = try await store.append(
                [Sample.unkeyed("r\(number)")], container: Sample.container,
                source: Sample.source, at: Sample.moment(0))
            moments.append(clock.moment)
            clock.advance(by: .seconds(1))
        }
        return moments
    }

    /// Restores the destination's backups; returns the head of the restored log and the outcome.
    static func restored(
        _ destination: any BackupDestination, asOf moment: Timestamp? = nil
    ) async throws -> (head: UInt64, outcome: BackupReading.Outcome) {
        let place = try TemporaryStore(in: .memory)
        let outcome = try await BackupReading(destination)
            .rebuild(at: place.path + ".fetched", asOf: moment)
        let report = try RelayStore.restore(from: place.path + ".fetched", to: place.path)
        #expect(report.problems == [])
        let store = try place.open()
        let head = try await store.head().rawValue
        #expect(head == report.head.rawValue)
        await store.close()
        return (head, outcome)
    }

    /// Returns a copy of the files of the store and its spool, as a kill would leave them.
    func remains() throws -> TemporaryStore {
        let copy = try TemporaryStore(in: .memory)
        for ending in ["", "-wal", "-witness", ".lock", "-spool"] {
            try FileManager.default.copyItem(
                atPath: home.path + ending, toPath: copy.path + ending)
        }
        return copy
    }
}
