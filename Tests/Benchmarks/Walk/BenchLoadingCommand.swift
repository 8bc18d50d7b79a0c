import ArgumentParser
import Fanout
import Foundation
import Logging
import RelayModel
import RelayServer
import Storage
import StorageSQL
import StorageSQLite

/// Measures the start: building the index from the registry, writing a snapshot, and loading it.
struct BenchLoadingCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "loading",
        abstract: "Measure how long a relay takes to load its subscriptions, and in what memory.",
        discussion: """
            Fills a store with --subscriptions of the realistic mixture of bench match, dealt out \
            among --users with a device each; with --store the file is kept, and used again by the \
            next run, or by belfry serve. Then processes of their own load the state from the \
            registry, write a snapshot, and load it from the snapshot, each as a relay does at its \
            start. Prints one JSON object: seconds and megabytes of each; what it is doing \
            meanwhile goes to standard error.
            """)

    /// The part of the start that one process measures.
    enum Phase: String, ExpressibleByArgument {
        case registry, snapshot
    }

    @Option(help: "Subscriptions in the registry.")
    var subscriptions = 100_000
    @Option(help: "Users, each with a device.")
    var users = 10_000
    @Option(help: "The store; without it one that is removed afterwards.")
    var store: String?
    @Option(help: .hidden)
    var phase: Phase?

    func validate() throws {
        guard subscriptions > 0, users > 0 else {
            throw ValidationError("numbers must be positive")
        }
    }

    func run() async throws {
        if let phase, let store { return try await measure(phase, store) }
        let directory = FileManager.default.temporaryDirectory
            .appending(path: "belfry-bench-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = store ?? directory.appending(path: "belfry.sqlite").path
        let began = ContinuousClock.now
        let isNew = !FileManager.default.fileExists(atPath: path)
        if isNew { try await furnish(path) }
        var figures: JSONObject = [
            "fillSeconds": isNew ? .number(Self.seconds(since: began)) : .null
        ]
        Self.tell("loading from the registry")
        figures["registry"] = try child(.registry, path)
        Self.tell("loading from the snapshot")
        figures["snapshot"] = try child(.snapshot, path)
        print(JSONValue.object(figures).text)
    }

    // MARK: Filling

    private func furnish(_ path: String) async throws {
        var settings = StoreSettings()
        settings.tailEntries = 0
        let store = try RelayStore.open(path: path, settings: settings)
        let now = World.real.now()
        let loader = BenchLoadWriter(container: try Self.container, users: users)
        try await store.save(
            ContainerSettings(key: loader.container, topics: ["com.example.bench"]), at: now)
        guard var load = BenchWorkload(shape: .g, count: subscriptions, seed: 1) else {
            throw ExitCode.failure
        }
        var edits: [Int: [SubscriptionEdit]] = [:]
        for number in 0..<subscriptions {
            let subscription = try loader.subscription(number, load.subscription(number))
            edits[number % users, default: []].append(.create(subscription))
        }
        Self.tell("filling the store")
        for (turn, first) in stride(from: 0, to: users, by: 256).enumerated() {
            if turn % 16 == 15 { Self.tell("filled for \(first) of \(users) users") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for user in first..<min(first + 256, users) {
                    let owned = edits.removeValue(forKey: user) ?? []
                    group.addTask {
                        _ = try await store.register(try loader.device(user), at: now)
                        let owner = SubscriptionOwner(
                            container: loader.container, database: .public,
                            user: try loader.owner(user))
                        _ = try await store.edit(
                            owned, of: owner, atomicity: .independent, at: now)
                    }
                }
                try await group.waitForAll()
            }
        }
        // Moves the progress to the head, as in a relay that has settled everything.
        let mark = try await store.mark()
        try await store.settle(
            SettledStep(
                from: mark, to: ProgressMark(position: try await store.head(), offset: 0)))
        await store.close()
    }

    private static var container: ContainerKey {
        get throws {
            guard let name = ContainerID(rawValue: "iCloud.com.example.bench") else {
                throw ExitCode.failure
            }
            return ContainerKey(container: name, environment: .production)
        }
    }

    // MARK: Loading

    private func child(_ phase: Phase, _ path: String) throws -> JSONValue {
        let process = Process()
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["loading", "--store", path, "--phase", phase.rawValue]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw ExitCode(process.terminationStatus) }
        return try JSONValue(parsing: [UInt8](text).filter { $0 >= 0x20 })
    }

    private func measure(_ phase: Phase, _ path: String) async throws {
        let store = try RelayStore.open(path: path)
        if phase == .registry { try await store.forgetSnapshot() }
        let world = World.real
        let snapshots = SnapshotStore(
            SnapshotStore.Settings(stem: path + "-snapshot-", interval: .seconds(600)),
            storeIdentity: store.storeIdentity, store: store, now: world.now, clock: world.clock,
            makeIdentity: {
                UUIDBytes(high: .random(in: 0...(.max)), low: .random(in: 0...(.max)))
            }, logger: Logger(label: "belfry.bench"))
        let mark = try await store.mark()
        let before = ProcessMemory.residentBytes
        var follower = Follower(
            log: store, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: 7, clock: ContinuousClock(), settings: { _ in nil },
            logger: Logger(label: "belfry.bench"),
            snapshots: snapshots, take: { _ in })
        let start = ContinuousClock.now
        try await follower.recover(at: mark, from: store)
        var figures: JSONObject = ["seconds": .number(Self.seconds(since: start))]
        let after = ProcessMemory.residentBytes
        figures["residentMegabytes"] = .integer(Int64((after - before) >> 20))
        figures["peakMegabytes"] = .integer(Int64(Usage.maximumResidentKilobytes / 1024))
        let begun = ContinuousClock.now
        if let image = follower.lastImage() {
            figures["imageSeconds"] = .number(Self.seconds(since: begun))
            figures["imageMegabytes"] = .integer(Int64(image.size >> 20))
            try await snapshots.finish(image, progress: mark.position)
            figures["imageAndFileSeconds"] = .number(Self.seconds(since: begun))
        }
        await store.close()
        print(JSONValue.object(figures).text)
    }

    private static func tell(_ text: String) {
        FileHandle.standardError.write(Data("\(text)\n".utf8))
    }

    private static func seconds(since start: ContinuousClock.Instant) -> Double {
        (start.duration(to: .now) / .milliseconds(1)).rounded() / 1000
    }
}
