import Foundation
import GRDB
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

@Suite struct StoreOpeningTests {
    @Test func `the writer commits with FULL, and the settings are read back`() async throws {
        let home = try TemporaryStore()
        let store = try home.open()
        let found = try store.pool.write { db in
            try ["journal_mode", "synchronous", "foreign_keys", "trusted_schema", "busy_timeout"]
                .map { try String.fetchOne(db.database, sql: "PRAGMA \($0)") }
        }
        #expect(found == ["wal", "2", "1", "0", "5000"])
        await store.close()
    }

    @Test func `a writer that only syncs checkpoints is refused because it loses commits`()
        throws
    {
        let home = try TemporaryStore()
        let connections = StoreConnections(path: home.path, settings: .forTests)
        let db = try connections.openConnection()
        defer { db.close() }
        try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        #expect(
            throws: StorageError.unsafeSetting(name: "synchronous", wanted: "2", found: "1")
        ) {
            try connections.readBack(db)
        }
    }

    @Test func `no statement may write to the schema table`() async throws {
        let home = try TemporaryStore()
        let store = try home.open()
        #expect(throws: EmbeddedError.self) {
            try store.pool.write { db in
                try db.execute(
                    sql: "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema")
            }
        }
        await store.close()
    }

    @Test func `a store that is opened during a check does not look like one below a newer log`()
        async throws
    {
        let home = try TemporaryStore()
        await (try await home.openReady()).close()
        let known = try #require(try StoreWitness.record(of: home.path))
        #expect(known.isEnded)
        let store = try await home.openReady()
        #expect(try #require(try StoreWitness.record(of: home.path)).commits > known.commits)
        let connections = StoreConnections(path: home.path, settings: .forTests)
        #expect(connections.problemBelowTheLog(known) == nil)
        await store.close()
    }

    @Test func `an orderly end leaves the file alone without a log although readers were open`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        #expect(try await store.head() == .start)
        #expect(FileManager.default.fileExists(atPath: home.path + "-wal"))
        await store.close()
        #expect(FileManager.default.fileExists(atPath: home.path))
        for ending in ["-wal", "-shm"] {
            #expect(!FileManager.default.fileExists(atPath: home.path + ending), "\(ending)")
        }
    }

    @Test func `a second opening is refused with the process that has the file open`() async throws
    {
        let home = try TemporaryStore()
        let store = try home.open()
        let refusal = StorageError.locked(path: home.path, holder: "process \(getpid())")
        #expect(throws: refusal) { try home.open() }
        #expect(throws: refusal) { try RelayStore.migrate(path: home.path) }
        #expect(try RelayStore.schemaVersion(of: home.path) == StoreSchema.newestVersion)
        await store.close()
        await (try home.open()).close()
    }

    @Test func `a second process is refused`() async throws {
        let home = try TemporaryStore()
        let store = try home.open()
        let path = home.path
        let holder = "process \(getpid())"
        await #expect(processExitsWith: .success) {
            [path = path as String, holder = holder as String] in
            do {
                _ = try RelayStore.open(path: path)
                exit(1)
            } catch StorageError.locked(path, holder) {
                exit(0)
            }
        }
        await store.close()
    }

    @Test func `a store keeps its identity, and no other store has it`() async throws {
        let home = try TemporaryStore()
        let first = try home.open()
        let identity = first.storeIdentity
        await first.close()
        let second = try home.open()
        #expect(second.storeIdentity == identity)
        #expect(second.epoch == first.epoch + 1)
        await second.close()
        let other = try TemporaryStore().open()
        #expect(other.storeIdentity != identity)
        await other.close()
    }

    @Test func `a file that is no database is refused and left alone`() throws {
        let home = try TemporaryStore()
        let text = Data(String(repeating: "Dear diary. ", count: 50).utf8)
        try text.write(to: URL(filePath: home.path))
        #expect(throws: StorageError.notSQLite(home.path)) { try home.open() }
        // A check reports the same error, without words of SQL.
        #expect(throws: StorageError.notSQLite(home.path)) {
            try RelayStore.check(path: home.path)
        }
        #expect(
            "\(StorageError.notSQLite(home.path))".hasPrefix(
                "\(home.path) cannot be used: it is not a store of Belfry: "))
        #expect(try Data(contentsOf: URL(filePath: home.path)) == text)
    }

    @Test func `no files are left beside a file that is no store`() async throws {
        let home = try TemporaryStore()
        let folder = URL(filePath: home.path).deletingLastPathComponent()
        let text = folder.appending(path: "notes.txt")
        try Data("Dear diary.".utf8).write(to: text)
        try Data().write(to: folder.appending(path: "empty"))
        try FileManager.default.createDirectory(
            at: folder.appending(path: "inner"), withIntermediateDirectories: false)
        let before = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        var settings = StoreSettings.forTests
        settings.creation = .never
        for name in ["notes.txt", "empty", "inner"] {
            let path = folder.appending(path: name).path
            #expect(throws: StorageError.self, "\(name)") {
                try RelayStore.open(path: path, settings: settings)
            }
        }
        #expect(throws: StorageError.self) { try RelayStore.migrate(path: text.path) }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == before)
        // The lock file of a store stays, even if the store can no longer be opened.
        await (try home.open()).close()
        try Data("Dear diary.".utf8).write(to: URL(filePath: home.path))
        #expect(throws: StorageError.self) { try home.open(settings) }
        #expect(FileManager.default.fileExists(atPath: home.path + ".lock"))
    }

    @Test func `another program's database is refused`() throws {
        let home = try TemporaryStore()
        let queue = try DatabaseQueue(path: home.path)
        try queue.write { try $0.execute(sql: "CREATE TABLE recipe (id INTEGER PRIMARY KEY)") }
        try queue.close()
        let refusal = StorageError.noStore(home.path, "another program wrote it")
        #expect(throws: refusal) { try home.open() }
        #expect(throws: refusal) { try RelayStore.schemaVersion(of: home.path) }
    }

    @Test func `a damaged page is found at the start`() async throws {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        for number in 0..<50 {
            _ = try await store.append(
                [Sample.unkeyed("record-\(number)")], container: Sample.container,
                source: Sample.source, at: Sample.moment(0))
        }
        await store.close()
        let file = try FileHandle(forUpdating: URL(filePath: home.path))
        let size = try file.seekToEnd()
        for page in stride(from: UInt64(4096), to: size, by: 4096) {
            try file.seek(toOffset: page)
            try file.write(contentsOf: Data(repeating: 0x5A, count: 64))
        }
        try file.close()
        let error = #expect(throws: StorageError.self) { try home.open() }
        guard case .damaged(home.path, _) = error else {
            Issue.record("found \(String(describing: error))")
            return
        }
    }

    @Test func `a missing folder is named`() throws {
        let path = "/nonexistent/belfry.sqlite"
        #expect(
            throws: StorageError.inaccessible(
                path: path, reason: "cannot open \(path).lock: No such file or directory")
        ) { try RelayStore.open(path: path) }
    }

    @Test func `the version of a missing file is refused`() throws {
        let home = try TemporaryStore()
        let missing = StorageError.inaccessible(path: home.path, reason: "there is no such file")
        #expect(throws: missing) { try RelayStore.schemaVersion(of: home.path) }
        #expect(throws: missing) { try RelayStore.check(path: home.path) }
    }

    @Test func `a closed store refuses everything`() async throws {
        let store = try TemporaryStore().open()
        let waiting = Task { try await store.waitForGrowth(beyond: .start) }
        await store.close()
        let closed = StorageError.closed("the store is closed")
        await #expect(throws: closed) { try await waiting.value }
        await #expect(throws: closed) {
            try await store.save(
                ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        }
        await #expect(throws: closed) { try await store.containers() }
    }
}
