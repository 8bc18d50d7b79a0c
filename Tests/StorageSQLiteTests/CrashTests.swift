import Foundation
import GRDB
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// What the store promises after SIGKILL at any moment.
@Suite struct CrashTests {
    @Test(arguments: [3, 17, 60, 140, 300])
    func `changes acknowledged before a kill are there after it`(kills: Int) async throws {
        let home = try TemporaryStore()
        let ledger = home.path + ".ledger"
        let path = home.path
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = path as String, ledger = ledger as String, kills = kills as Int] in
            try await Self.appendUntilKilled(path: path, ledger: ledger, kills: kills)
        }
        let acknowledged = try String(contentsOfFile: ledger, encoding: .utf8)
            .split(separator: "\n").map(String.init)
        #expect(acknowledged.count >= kills)

        let store = try home.open()
        let entries = try await store.entries(after: .start, limit: 10_000)
        #expect(entries.map(\.position.rawValue) == (1...UInt64(entries.count)).map(\.self))
        #expect(try await store.head().rawValue == UInt64(entries.count))
        var stored: [String: Int] = [:]
        for case .change(let change, _, _) in entries.map(\.body) {
            let request = change.recordID.recordName.rawValue.split(separator: "-")[0]
            stored[String(request), default: 0] += 1
        }
        // Each request is there completely or not at all, and every acknowledged one is there.
        #expect(stored.values.allSatisfy { $0 == 3 })
        #expect(acknowledged.allSatisfy { stored[$0] == 3 })
        await store.close()
    }

    /// Appends from eight tasks, and kills the process in the middle of a commit after `kills`
    /// acknowledgements.
    ///
    /// Each acknowledgement is written to the file `ledger`.
    private static func appendUntilKilled(path: String, ledger: String, kills: Int) async throws {
        let store = try RelayStore.open(path: path, settings: .forTests)
        try await store.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        let descriptor = open(ledger, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for number in 0..<1000 {
                        let name = "\(task)_\(number)"
                        let outcomes = try? await store.append(
                            (0..<3).map { Sample.unkeyed("\(name)-\($0)") },
                            container: Sample.container, source: Sample.source,
                            at: Sample.moment(0))
                        guard outcomes?.count == 3 else { continue }
                        let line = Array("\(name)\n".utf8)
                        _ = write(descriptor, line, line.count)
                        guard lseek(descriptor, 0, SEEK_CUR) >= kills * 7 else { continue }
                        await dieInCommit(store)
                    }
                }
            }
        }
    }

    private static func dieInCommit(_ store: RelayStore) async {
        try? await store.write { commit in
            let body = LogEntryBody.devicesEnded(serials: [1])
            _ = try commit.append(
                body, storedBody: try body.storedBody(), in: try commit.container(Sample.container),
                at: Sample.moment(0))
            kill(getpid(), SIGKILL)
        }
    }

    @Test func `a kill within a migration leaves a complete version`() async throws {
        let home = try TemporaryStore()
        let path = home.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let connections = StoreConnections(path: path, settings: .forTests)
            let db = try connections.openConnection()
            try db.execute(sql: "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE")
            try db.execute(sql: "PRAGMA user_version = 1; CREATE TABLE half (id INTEGER)")
            kill(getpid(), SIGKILL)
        }
        #expect(try RelayStore.schemaVersion(of: home.path) == 0)
        await (try home.open()).close()
        #expect(try RelayStore.schemaVersion(of: home.path) == StoreSchema.newestVersion)
    }
}
