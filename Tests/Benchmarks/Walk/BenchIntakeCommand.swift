import ArgumentParser
import ChangeSources
import Foundation
import Logging
import Metrics
import RelayModel
import RelayServer
import ServiceLifecycle
import Storage
import StorageSQL
import StorageSQLite

/// Measures durable intake over HTTP, against SQLite's own limit on the same disk.
struct BenchIntakeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "intake",
        abstract: "Measure durable changes over HTTP, beside SQLite's own limit on this disk.",
        discussion: """
            A relay in this process, clients on threads of their own, each with one connection, \
            and a change source that believes everybody. Every change has an ID and fires \
            nothing. An answer counts when its commit is durable.
            """)

    @Option(help: "A directory on the disk to be measured; the files in it are removed afterwards.")
    var directory = NSTemporaryDirectory()
    @Option(name: .customLong("storage-url"), help: ArgumentHelp(BenchStore.help))
    var storageURL: String?
    @Option(help: "Seconds of each measurement.")
    var seconds = 5.0
    @Option(help: "Connections.")
    var connections = 64
    @Option(help: "Bytes of each change.")
    var bytes = 500
    @Option(help: "How long a commit waits for others, in milliseconds.")
    var commitMilliseconds = 2

    @Option(help: "Changes in each request; may be repeated.")
    var batch = [1, 100]

    func validate() throws {
        guard seconds > 0, connections > 0, bytes >= 200, batch.allSatisfy({ $0 > 0 }) else {
            throw ValidationError("numbers must be positive, and --bytes at least 200")
        }
    }

    func run() async throws {
        let place = URL(filePath: directory)
            .appending(path: "belfry-bench-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: place) }
        print("per request  connections  changes/s  SQLite alone/s  share  p50 ms  p99 ms  refused")
        for batch in batch {
            let connections = batch == 1 ? connections : min(connections, 8)
            // The bare inserts share a commit among as many rows as the relay does.
            let bare = try BareInserts.rowsPerSecond(
                path: place.appending(path: "bare\(batch).sqlite").path, bytes: bytes,
                perCommit: batch == 1 ? connections : 256, seconds: min(seconds, 3))
            let figures = try await measure(
                BenchStore(
                    path: place.appending(path: "relay\(batch).sqlite").path, url: storageURL),
                batch, connections)
            print(figures.line(batch: batch, connections: connections, bare: bare))
        }
    }

    private func measure(
        _ place: BenchStore, _ batch: Int, _ connections: Int
    ) async throws -> IntakeFigures {
        try await Self.furnish(place)
        let values = try await ConfigurationValues.gather(
            arguments: place.settings + [
                "--http-port", "0", "--admin-port", "0",
                "--apns-url", "https://127.0.0.1:1",
                "--storage-commit-milliseconds", "\(commitMilliseconds)",
            ], environment: [:])
        let logger = Logger(label: "belfry.bench") { _ in SwiftLogNoOpLogHandler() }
        let relay = try await Relay(
            try RelayConfiguration(values), world: .real, metrics: PrometheusMetrics(),
            logger: logger)
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [.init(service: relay)], logger: logger))
        let running = Task { try await group.run() }
        let port = try await relay.ports.port(of: "http")
        let load = IntakeLoad(port: port, batch: batch, bytes: bytes, seconds: seconds)
        let figures = await load.run(connections: connections)
        await group.triggerGracefulShutdown()
        try await running.value
        return figures
    }

    private static func furnish(_ place: BenchStore) async throws {
        let store = try place.open()
        let key = try IntakeTarget.containerKey
        let now = World.real.now()
        try await store.save(ContainerSettings(key: key, topics: ["com.example.Art"]), at: now)
        let definition: JSONValue = [
            "name": .string(IntakeTarget.source), "preset": "belfry",
            "verification": ["scheme": "none"],
        ]
        guard let name = SourceName(rawValue: IntakeTarget.source) else { throw ExitCode.failure }
        try await store.save(
            StoredSource(
                container: key, name: name,
                definition: .object(try ChangeSource(json: definition).json), savedAt: now))
        await store.close()
    }
}

/// The container and source to which the changes are posted.
enum IntakeTarget {
    static let container = "iCloud.com.example.bench"
    static let source = "database"

    static var containerKey: ContainerKey {
        get throws {
            guard let name = ContainerID(rawValue: container) else { throw ExitCode.failure }
            return ContainerKey(container: name, environment: .development)
        }
    }
}

/// The result of a measurement.
struct IntakeFigures: Sendable {
    var changes = 0
    var refused = 0
    var seconds = 0.0
    /// The time to each answer, in nanoseconds.
    var delays: [Int64] = []

    func line(batch: Int, connections: Int, bare: Double) -> String {
        let rate = Double(changes) / seconds
        let sorted = delays.sorted()
        func part(_ part: Double) -> String {
            guard !sorted.isEmpty else { return "-" }
            let place = min(sorted.count - 1, Int(Double(sorted.count) * part))
            return String((Double(sorted[place]) / 1e5).rounded() / 10)
        }
        let columns = [
            (String(batch), 11), (String(connections), 12), (String(Int(rate)), 10),
            (String(Int(bare)), 15), ("\(Int(rate / bare * 100)) %", 6), (part(0.5), 7),
            (part(0.99), 7), (String(refused), 8),
        ]
        return columns.map { text, width in
            String(repeating: " ", count: max(0, width - text.count)) + text
        }.joined(separator: " ")
    }
}
