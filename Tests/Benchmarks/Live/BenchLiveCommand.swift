import ArgumentParser
import CoreMetrics
import Foundation
import Live
import Logging
import RelayModel
import RelayServer
import Storage
import StorageSQL
import StorageSQLite

/// Measures the live engine without sockets: windows that move, and first results.
struct BenchLiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "live",
        abstract: "Measure the live engine without sockets: windows that move, and first results.",
        discussion: """
            Fills a store with records, and declares --queries of as many clients: each a window \
            of 20 records, so that each record is a member of some 25 at 10,000 of both; then \
            changes records, and measures the engine's time for each. With --first each query is \
            of what belongs to its client. Prints one JSON object. What clients are told goes \
            nowhere; rows 5 and 6 of Tests/Campaigns/live-figures are the same with sockets.
            """)

    @Option(help: "Live queries, each of a client of its own.")
    var queries = 10_000
    @Option(help: "Records.")
    var records = 10_000
    @Option(help: "Changes of records, of each kind.")
    var changes = 2000
    @Flag(help: "Declare queries of what belongs to each client, and change nothing.")
    var first = false

    func validate() throws {
        guard queries > 0, records > 0, changes > 0 else {
            throw ValidationError("numbers must be positive")
        }
    }

    func run() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appending(path: "belfry-bench-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let took = CollectedDurations(of: "belfry_live_change_seconds")
        MetricsSystem.bootstrap(took)
        let store = try RelayStore.open(path: directory.appending(path: "belfry.sqlite").path)
        let load = BenchLiveLoad(container: try BenchLiveLoad.container, queries: queries)
        try await load.fill(store, records, areOwned: first)
        let engine = LiveEngine(
            log: store, shadow: store,
            writing: LiveRecordForm(store: store.storeIdentity, secret: [7]), store: "bench",
            seed: 1, clock: ContinuousClock(),
            logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() })
        let figures = try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try? await engine.follow() }
            defer { tasks.cancelAll() }
            var figures = try await begin(load, engine)
            guard !first else { return figures }
            for (name, leaves) in [("moves", false), ("leaves", true)] {
                took.forget()
                try await load.change(store, records, changes, leaves: leaves)
                try await engine.reachHead()
                figures[name] = Self.summary(of: took.sorted)
            }
            return figures
        }
        await store.close()
        print(JSONValue.object(figures).text)
    }

    /// Declares the queries, and waits until each client has its first result.
    private func begin(_ load: BenchLiveLoad, _ engine: LiveEngine) async throws -> JSONObject {
        try await engine.reachHead()
        let hub = BenchLiveHub()
        let before = ProcessMemory.residentBytes
        let began = ContinuousClock.now
        for number in 0..<queries {
            let query = try first ? load.ofOwner(number) : load.window(number)
            let reader = LiveReader.user(query.subscription.owner)
            let client = UInt64(number + 1)
            await engine.connect(client, at: hub, of: load.container, as: reader)
            let schema = await engine.schema(of: load.container)
            let declared = DeclaredQuery(
                id: "q", query, grant: .world,
                fingerprint: query.fingerprint(of: reader, schema: ""))
            try await engine.declare(
                LiveSet(version: 1, [declared], removing: nil, under: schema), by: client)
        }
        await hub.reach(queries)
        return [
            "beginSeconds": .number(began.duration(to: .now) / .seconds(1)),
            "residentMegabytes": .integer(Int64((ProcessMemory.residentBytes - before) >> 20)),
            "peakMegabytes": .integer(Int64(Usage.maximumResidentKilobytes / 1024)),
        ]
    }

    private static func summary(of nanoseconds: [Int64]) -> JSONValue {
        guard !nanoseconds.isEmpty else { return .null }
        func microseconds(_ part: Double) -> JSONValue {
            let place = min(nanoseconds.count - 1, Int(Double(nanoseconds.count) * part))
            return .number(Double(nanoseconds[place] / 100) / 10)
        }
        return [
            "p50Microseconds": microseconds(0.5), "p99Microseconds": microseconds(0.99),
            "meanMicroseconds": .integer(
                nanoseconds.reduce(0, +) / Int64(nanoseconds.count) / 1000),
            "changes": .integer(Int64(nanoseconds.count)),
        ]
    }
}
