import ArgumentParser
import FoundationEssentials
import Glibc
import RelayModel
import Storage
import StorageSQL
import StorageSQLite

/// Measures durable appends: many callers that share commits, compared with a transaction a
/// request.
struct BenchStorageCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storage",
        abstract: "Measure durable appends, with and without group commit, on this disk.")

    @Option(help: "A directory on the disk to be measured; the file in it is removed afterwards.")
    var directory = FileManager.default.temporaryDirectory.path

    @Option(help: "Changes to append in each measurement.")
    var changes = 20_000

    @Option(help: "Callers that append at the same time.")
    var callers = 64

    @Option(help: "Bytes of text in each change.")
    var bytes = 400

    func validate() throws {
        guard changes > 0, callers > 0, bytes > 0 else {
            throw ValidationError("changes, callers and bytes must be positive")
        }
    }

    func run() async throws {
        try await CommandFailure.told {
            try checkDirectory()
            try await measure()
        }
    }

    /// Refuses a missing folder.
    ///
    /// Creating one for a mistyped name would leave it behind.
    private func checkDirectory() throws {
        let files = FileManager.default
        guard files.fileExists(atPath: directory) else {
            throw CommandFailure(.input, "--directory: there is no folder \(directory)")
        }
        guard files.fileExists(atPath: "\(directory)/.") else {
            throw CommandFailure(.input, "--directory: \(directory) is not a folder")
        }
        guard files.isWritableFile(atPath: directory) else {
            throw CommandFailure(
                .input, "--directory: the folder \(directory) is not writable")
        }
    }

    private func measure() async throws {
        print("changes/s  changes/commit  per request  commits")
        for batch in [1, 10, 100] {
            for sharing in [CommitSharing.none, .group] {
                let result = try await measure(batch: batch, sharing: sharing)
                print(
                    pad(Int(result.rate), 9), pad(result.changesPerCommit, 15), pad(batch, 12),
                    " ", sharing.rawValue)
            }
        }
        try await measureFollowing()
    }

    private func measure(batch: Int, sharing: CommitSharing) async throws -> AppendRate {
        // A disk performs some hundreds of commits a second, so without sharing a fifth of the work
        // is enough.
        let requests = max(callers, changes / batch / (sharing == .none && batch < 100 ? 5 : 1))
        return try await withStore(sharing.settings) { store in
            let before = store.commitCount
            let start = ContinuousClock.now
            try await append(requests: requests, of: batch, to: store)
            let seconds = (ContinuousClock.now - start) / .seconds(1)
            return AppendRate(
                changes: requests * batch, commits: Int(store.commitCount - before),
                seconds: seconds)
        }
    }

    /// Measures how fast a follower reads entries that are no longer in memory.
    private func measureFollowing() async throws {
        var settings = StoreSettings()
        settings.tailEntries = 1
        try await withStore(settings) { store in
            try await append(requests: max(1, changes / 100), of: 100, to: store)
            let start = ContinuousClock.now
            var position = LogPosition.start
            var count = 0
            while let last = try await store.entries(after: position, limit: 500).last?.position {
                count += Int(last.rawValue - position.rawValue)
                position = last
            }
            let seconds = (ContinuousClock.now - start) / .seconds(1)
            print(pad(Int(Double(count) / seconds), 9), " entries/s followed from the file")
        }
    }

    private func append(requests: Int, of batch: Int, to store: RelayStore) async throws {
        let text = String(repeating: "x", count: bytes)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<callers {
                group.addTask {
                    for request in stride(from: caller, to: requests, by: callers) {
                        let changes = try (0..<batch).map {
                            try Bench.change("\(request)-\($0)", text: text)
                        }
                        _ = try await store.append(
                            changes, container: try Bench.container(), source: try Bench.source(),
                            at: Timestamp(seconds: 1_800_000_000))
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private func withStore<Value>(
        _ settings: StoreSettings, _ body: (RelayStore) async throws -> Value
    ) async throws -> Value {
        let place = URL(filePath: directory)
            .appending(path: "belfry-bench-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: place) }
        let store = try RelayStore.open(
            path: place.appending(path: "belfry.sqlite").path, settings: settings)
        try await store.save(
            ContainerSettings(key: try Bench.container(), topics: []),
            at: Timestamp(seconds: 1_800_000_000))
        let value = try await body(store)
        await store.close()
        return value
    }

    private func pad(_ number: Int, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: " ", count: max(0, width - text.count)) + text
    }
}

/// Whether requests share commits.
private enum CommitSharing: String {
    case none = "one per request"
    case group = "shared"

    var settings: StoreSettings {
        var settings = StoreSettings()
        settings.waitingChanges = 1_000_000
        if self == .none {
            settings.commitChanges = 1
            settings.commitDelay = .zero
        }
        return settings
    }
}

private struct AppendRate {
    let changes: Int
    let commits: Int
    let seconds: Double

    var rate: Double { Double(changes) / seconds }
    var changesPerCommit: Int { changes / max(1, commits) }
}

/// The values to append.
private enum Bench {
    static func container() throws -> ContainerKey {
        ContainerKey(container: try named("bench"), environment: .development)
    }

    static func source() throws -> SourceName { try named("bench") }

    /// Returns a change with a key, like those of a source that numbers its changes.
    static func change(_ name: String, text: String) throws -> ChangeToAppend {
        var change = RecordChange(
            .update, of: try named("Artwork"), RecordID(recordName: try named(name)))
        change.after = RecordImage([
            "title": .string(text), "artist": .string("artist-1"), "year": .integer(1907),
        ])
        let digest = Array(name.utf8.prefix(32))
        return ChangeToAppend(change, key: DedupeKey(kind: .position, text: name, digest: digest))
    }

    private static func named<Identifier: ValidatedIdentifier>(_ text: String) throws -> Identifier
    {
        guard let identifier = Identifier(rawValue: text) else {
            throw ValidationError("\(text) is not \(Identifier.rule)")
        }
        return identifier
    }
}
