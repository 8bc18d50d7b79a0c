import Fanout
import Logging
import RelayModel
import RelayTestKit
import Storage
import StoragePostgreSQL
import StorageSQL
import StorageSQLite
import Synchronization

/// A store with an owner, and a reading handle as of a relay that does not own it.
struct OwnedStore: Sendable {
    /// The engine of the store.
    enum Engine: CaseIterable { case file, server }

    static var engines: [Engine] {
        PostgresServer.isInstalled ? Engine.allCases : [.file]
    }

    let store: RelayStore
    /// The same store as a standby relay reads it.
    let read: RelayStore
    /// The schema of the store on a server.
    let schema: String?

    init(_ engine: Engine) throws {
        switch engine {
        case .file:
            store = try TemporaryStore().open(.forTests)
            (read, schema) = (store, nil)
        case .server:
            let server = try PostgresServer.ofStores()
            let schema = server.schemaName()
            let place = try PostgresPlace(url: server.url(), schema: schema)
            store = try RelayStore.open(place, as: Self.claimant(), settings: .forTests)
            read = try RelayStore.reading(place, as: Self.claimant(), settings: .forTests)
            self.schema = schema
        }
    }

    private static func claimant() -> StoreClaimant {
        StoreClaimant(name: "test", identity: (0..<16).map { _ in .random(in: 0...255) })
    }

    func close() async {
        await read.close()
        await store.close()
    }

    /// Settles everything up to `position`.
    func settle(to position: LogPosition) async throws {
        let mark = try await store.mark()
        guard mark.position < position else { return }
        try await store.settle(
            SettledStep(from: mark, to: ProgressMark(position: position, offset: 0)))
    }

    /// Prunes what has ended; if `log` is true, the settled log too.
    func prune(log: Bool = false) async throws {
        var retention = Retention()
        if log { retention.logAge = .zero }
        _ = try await store.prune(retention, at: Fixtures.moment.advanced(by: .seconds(60)))
    }
}

/// Reads a store, but fails from some reading on, for good or for a number of readings, as a
/// database that goes away.
///
/// It counts what is read.
final class BrokenOffReading: StandbyVersions, StateSnapshots {
    struct Away: Error {}

    private let store: RelayStore
    private let left: Mutex<Int>
    private let failures: Int
    private let error: any Error
    private let counts = Mutex<[Int]>([])

    init(
        _ store: RelayStore, after count: Int = .max, for failures: Int = .max,
        as error: any Error = Away()
    ) {
        self.store = store
        self.failures = failures
        self.error = error
        left = Mutex(count)
    }

    /// The number of versions that each reading of versions has returned.
    var portions: [Int] { counts.withLock { $0 } }

    private func read<Value>(_ body: () async throws -> Value) async throws -> Value {
        let isAway = left.withLock { left in
            left -= 1
            return left < 0 && left >= -failures
        }
        if isAway { throw error }
        return try await body()
    }

    private func counted<Version>(_ versions: [Version]) -> [Version] {
        counts.withLock { $0.append(versions.count) }
        return versions
    }

    func settledPlace() async throws -> LogPlace {
        try await read { try await store.settledPlace() }
    }

    func endings(
        since place: LogPlace, upTo end: LogPosition
    ) async throws -> EndingsSince {
        try await read { try await store.endings(since: place, upTo: end) }
    }

    func subscriptions(
        activeAt position: LogPosition, after serial: UInt64, limit: Int
    ) async throws -> [SubscriptionVersion] {
        counted(
            try await read {
                try await store.subscriptions(activeAt: position, after: serial, limit: limit)
            })
    }

    func subscriptions(_ serials: [UInt64]) async throws -> [SubscriptionVersion] {
        counted(try await read { try await store.subscriptions(serials) })
    }

    func devices(
        activeAt position: LogPosition, after serial: UInt64, limit: Int
    ) async throws -> [DeviceVersion] {
        counted(
            try await read {
                try await store.devices(activeAt: position, after: serial, limit: limit)
            })
    }

    func badges() async throws -> [BadgeHolder: Int64] {
        try await read { try await store.badges() }
    }

    func recordedSnapshot() async throws -> SnapshotRecord? { try await store.recordedSnapshot() }

    func record(_ snapshot: SnapshotRecord) async throws -> SnapshotRecording {
        try await store.record(snapshot)
    }

    func forgetSnapshot() async throws { try await store.forgetSnapshot() }

    func endings(
        after start: LogPosition, upTo end: LogPosition
    ) async throws -> [VersionEnding] {
        try await store.endings(after: start, upTo: end)
    }
}
