import CSQLite
import Foundation
import GRDB
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// The store refuses to serve a file that was damaged, truncated, exchanged or lost as if it were
/// sound.
@Suite struct DamageTests {
    /// Returns a closed store with rows in many tables and on many pages.
    private static func filled(entries: Int = 120) async throws -> TemporaryStore {
        let home = try TemporaryStore(in: .memory)
        let store = try home.open()
        try await fill(store, entries: entries)
        await store.close()
        return home
    }

    private static func fill(_ store: RelayStore, entries: Int) async throws {
        try await store.save(
            ContainerSettings(key: Sample.container, topics: ["t"]), at: Sample.moment(0))
        for number in 0..<entries {
            var change = Sample.change("record-\(number)")
            change.after = RecordImage([
                "text": .string(String(repeating: "lorem \(number) ", count: number % 40 * 30))
            ])
            _ = try await store.append(
                [ChangeToAppend(change, key: nil)], container: Sample.container,
                source: Sample.source, at: Sample.moment(Int64(number)))
        }
    }

    /// Returns everything that a store holds as text; throws if the store is refused.
    private static func content(_ path: String) throws -> [String] {
        try StoreConnections(path: path, settings: .forTests).inspect { connection in
            let db = connection.database
            let tables = try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            return try tables.flatMap { table in
                try Row.fetchAll(db, sql: "SELECT * FROM \"\(table)\"").map { row in
                    "\(table) \(row.columnNames.indices.map(row.columns.value(at:)))"
                }
            }
        }
    }

    private static func copy(_ home: TemporaryStore) throws -> TemporaryStore {
        let copy = try TemporaryStore(in: .memory)
        for ending in ["", "-wal", StoreWitness.ending]
        where FileManager.default.fileExists(atPath: home.path + ending) {
            try FileManager.default.copyItem(
                atPath: home.path + ending, toPath: copy.path + ending)
        }
        return copy
    }

    private static func flip(_ path: String, byte: Int, bit: Int) throws {
        let file = try #require(fopen(path, "r+b"))
        defer { fclose(file) }
        var value: UInt8 = 0
        fseek(file, byte, SEEK_SET)
        try #require(fread(&value, 1, 1, file) == 1)
        value ^= 1 << UInt8(bit)
        fseek(file, byte, SEEK_SET)
        fwrite(&value, 1, 1, file)
    }

    /// In a large copy, SQLite writes other pages before the first one, which says that the pages
    /// have checksums.
    @Test(arguments: [120, 1200])
    func `pages of new, copied and restored stores have checksums`(
        entries: Int
    ) async throws {
        let home = try await Self.filled(entries: entries)
        let backup = home.path + ".copy"
        _ = try RelayStore.backUp(path: home.path, to: backup)
        _ = try RelayStore.restore(from: backup, to: home.path + ".new")
        for path in [home.path, backup, home.path + ".new"] {
            let bytes = try Data(contentsOf: URL(filePath: path))
            #expect(bytes[20] == 8)
            for number in 0..<bytes.count / 4096 {
                let page = Array(bytes[number * 4096..<(number + 1) * 4096])
                let sum = belfry_page_checksum(page, 4088, Int64(number + 1))
                let stored = page[4088...].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
                #expect(sum == stored, "page \(number + 1) of \(path)")
            }
        }
    }

    @Test(arguments: Seeds.all)
    func `no flipped bit in the file is served`(seed: UInt64) async throws {
        let home = try await Self.filled()
        let expected = try Self.content(home.path)
        let size = LogTrimmer.size(of: home.path)
        var generator = SeededGenerator(seed: seed)
        var refused = 0
        for number in 0..<60 {
            let copy = try Self.copy(home)
            // Damages the header, the schema and the roots of tables more often than chance would.
            let byte =
                number.isMultiple(of: 3)
                ? Int.random(in: 0..<min(size, 16 * 4096), using: &generator)
                : Int.random(in: 0..<size, using: &generator)
            try Self.flip(copy.path, byte: byte, bit: Int.random(in: 0..<8, using: &generator))
            do {
                let store = try copy.open()
                let found = try await store.pool.read {
                    try Int.fetchOne($0.database, sql: "SELECT 1")
                }
                #expect(found == 1)
                await store.close()
            } catch is StorageError {
                refused += 1
                continue
            }
            // If the file opens, it must have lost nothing. Opening raises the epoch, which is in
            // the progress row, and updates the witness.
            let served = try Self.content(copy.path).filter { !$0.hasPrefix("progress ") }
            #expect(
                served == expected.filter { !$0.hasPrefix("progress ") }, "byte \(byte)")
        }
        #expect(refused > 40)
    }

    @Test(arguments: Seeds.all)
    func `no flipped bit in the log of a crashed store is served`(seed: UInt64) async throws {
        let home = try TemporaryStore(in: .memory)
        let store = try home.open()
        try await Self.fill(store, entries: 60)
        let crashed = try Self.copy(home)
        let expected = try await store.pool.read {
            try String.fetchAll($0.database, sql: "SELECT body FROM logEntry ORDER BY position")
        }
        await store.close()
        let size = LogTrimmer.size(of: crashed.path + "-wal")
        try #require(size > 10_000)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<40 {
            let copy = try Self.copy(crashed)
            let byte = Int.random(in: 0..<size, using: &generator)
            try Self.flip(
                copy.path + "-wal", byte: byte, bit: Int.random(in: 0..<8, using: &generator))
            guard let opened = try? copy.open() else { continue }
            let found = try await opened.pool.read {
                try String.fetchAll($0.database, sql: "SELECT body FROM logEntry ORDER BY position")
            }
            #expect(found == expected, "byte \(byte)")
            await opened.close()
        }
    }

    @Test(arguments: Seeds.all)
    func `a log that was cut after a crash is refused wherever it was cut`(
        seed: UInt64
    ) async throws {
        let home = try TemporaryStore(in: .memory)
        let store = try home.open()
        try await Self.fill(store, entries: 40)
        let crashed = try Self.copy(home)
        await store.close()
        let size = LogTrimmer.size(of: crashed.path + "-wal")
        var generator = SeededGenerator(seed: seed)
        for number in 0..<20 {
            let copy = try Self.copy(crashed)
            // Cuts at the end of a frame, or within one. The last frame belongs to the last commit.
            let frames = (size - 32) / 4120
            let kept = Int.random(in: 0..<frames, using: &generator)
            let length = number.isMultiple(of: 2) ? 32 + kept * 4120 : size * kept / frames
            truncate(copy.path + "-wal", off_t(length))
            let error = #expect(throws: StorageError.self, "cut to \(length) of \(size)") {
                try copy.open()
            }
            guard case .lost? = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
            // `RelayStore.check` reports the problem too.
            let report = try? RelayStore.check(path: copy.path)
            #expect(report?.problems.isEmpty != true)
        }
        // The complete files open.
        await (try Self.copy(crashed).open()).close()
    }

    @Test func `a missing, empty or cut file is refused while its witness exists`()
        async throws
    {
        let home = try await Self.filled()
        for length in [-1, 0, 100, 4096, LogTrimmer.size(of: home.path) - 4096] {
            let copy = try Self.copy(home)
            if length < 0 {
                try FileManager.default.removeItem(atPath: copy.path)
            } else {
                truncate(copy.path, off_t(length))
            }
            #expect(throws: StorageError.self, "cut to \(length)") { try copy.open() }
        }
    }

    @Test func `a new store is only created if that is requested`() async throws {
        let home = try TemporaryStore()
        var settings = StoreSettings.forTests
        settings.creation = .never
        #expect(throws: StorageError.missing(path: home.path)) { try home.open(settings) }
        await (try home.open()).close()
        await (try home.open(settings)).close()
        try FileManager.default.removeItem(atPath: home.path)
        try FileManager.default.removeItem(atPath: home.path + StoreWitness.ending)
        try Data([1]).write(to: URL(filePath: home.path + "-wal"))
        #expect(throws: StorageError.self) { try home.open() }
    }

    @Test func `an older copy, another store and a copy without its witness are refused`()
        async throws
    {
        let home = try await Self.filled()
        let older = try Self.copy(home)
        let store = try home.open()
        try await Self.fill(store, entries: 3)
        await store.close()
        let other = try await Self.filled(entries: 3)
        for source in [older, other] {
            let copy = try Self.copy(home)
            try FileManager.default.removeItem(atPath: copy.path)
            try FileManager.default.copyItem(atPath: source.path, toPath: copy.path)
            let error = #expect(throws: StorageError.self) { try copy.open() }
            guard case .lost? = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
        let alone = try Self.copy(home)
        try FileManager.default.removeItem(atPath: alone.path + StoreWitness.ending)
        #expect(throws: StorageError.self) { try alone.open() }
        // If one of the witness's two records is torn, the other is used. If both are, the store is
        // refused.
        let torn = try Self.copy(home)
        try Self.flip(torn.path + StoreWitness.ending, byte: 20, bit: 3)
        await (try torn.open()).close()
        try Self.flip(torn.path + StoreWitness.ending, byte: 20, bit: 3)
        try Self.flip(torn.path + StoreWitness.ending, byte: 4096 + 20, bit: 3)
        #expect(throws: StorageError.self) { try torn.open() }
    }

    @Test func `an older file under a newer log is refused, although the log has its head`()
        async throws
    {
        let home = try await Self.filled(entries: 3)
        let older = try Self.copy(home)
        let other = try await Self.filled(entries: 60)
        for _ in 0..<2 {
            let store = try home.open()
            try await Self.fill(store, entries: 1)
            await store.close()
        }
        let store = try home.open()
        try await Self.fill(store, entries: 1)
        let crashed = try Self.copy(home)
        await store.close()
        #expect(LogTrimmer.size(of: crashed.path + "-wal") > 0)
        for source in [older, other] {
            let mixed = try Self.copy(crashed)
            try FileManager.default.removeItem(atPath: mixed.path)
            try FileManager.default.copyItem(atPath: source.path, toPath: mixed.path)
            // Pages of the other store may be so wrong that the check cannot read them.
            #expect((try? RelayStore.check(path: mixed.path))?.problems != [])
            #expect(throws: StorageError.self) {
                try RelayStore.restore(from: mixed.path, to: mixed.path + ".new")
            }
            let link = mixed.path + ".link"
            try FileManager.default.createSymbolicLink(
                atPath: link, withDestinationPath: mixed.path)
            #expect(throws: StorageError.self) {
                try RelayStore.backUp(path: link, to: mixed.path + ".copy")
            }
            let error = #expect(throws: StorageError.self) { try mixed.open() }
            guard source === older else { continue }
            #expect("\(try #require(error))".contains("is an older copy or another store's"))
        }
        // With its own file, the same log is good.
        #expect(try RelayStore.check(path: crashed.path).problems == [])
        await (try crashed.open()).close()
    }

    @Test func `a complete older store beside a newer log is refused`() async throws {
        let home = try await Self.filled(entries: 3)
        let older = try Self.copy(home)
        let between = try home.open()
        try await Self.fill(between, entries: 1)
        await between.close()
        let store = try home.open()
        try await Self.fill(store, entries: 1)
        try FileManager.default.copyItem(
            atPath: home.path + "-wal", toPath: older.path + "-wal")
        await store.close()
        #expect((try? RelayStore.check(path: older.path))?.problems != [])
        #expect(throws: StorageError.self) {
            try RelayStore.restore(from: older.path, to: older.path + ".new")
        }
        let error = #expect(throws: StorageError.self) { try older.open() }
        #expect("\(try #require(error))".contains("it belongs to a newer file"))
        // Without the log, it is the store that it was.
        try FileManager.default.removeItem(atPath: older.path + "-wal")
        await (try older.open()).close()
    }

    @Test func `a power cut may bring back the log of an orderly end`() async throws {
        let home = try TemporaryStore()
        let store = try home.open()
        try await Self.fill(store, entries: 3)
        let running = try Self.copy(home)
        await store.close()
        let ended = try Self.copy(home)
        try FileManager.default.copyItem(
            atPath: running.path + "-wal", toPath: ended.path + "-wal")
        await (try ended.open()).close()
    }

    @Test func `a log that a reader keeps at a start does not make its file look old`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try home.open()
        try await Self.fill(store, entries: 5)
        let crashed = try Self.copy(home)
        await store.close()
        let reader = try StoreConnections(path: crashed.path, settings: .forTests)
            .openConnection(isReadOnly: true)
        try reader.begin(.deferred)
        #expect(try Int.fetchOne(reader.database, sql: "SELECT count(*) FROM logEntry") == 5)
        // The start cannot fold the log into the file, so the log goes on.
        var settings = StoreSettings.forTests
        settings.busyTimeout = .milliseconds(50)
        let again = try crashed.open(settings)
        try await Self.fill(again, entries: 1)
        let image = try Self.copy(crashed)
        #expect(try RelayStore.check(path: image.path).problems == [])
        await (try image.open()).close()
        reader.close()
        await again.close()
    }

    /// A first start leaves such a file if the disk was full or the process was killed.
    @Test(arguments: [0, 40, 4096 + 40])
    func `a witness that was created but not written is created again`(bytes: Int) async throws {
        let home = try TemporaryStore()
        _ = try RelayStore.migrate(path: home.path)
        let witness = home.path + StoreWitness.ending
        #expect(!FileManager.default.fileExists(atPath: witness))
        try Data(count: bytes).write(to: URL(filePath: witness))
        #expect(try RelayStore.check(path: home.path).problems == [])
        await (try home.open()).close()
        // A store that has recorded its witness is refused without it. The same goes for a witness
        // without a store.
        try Data(count: bytes).write(to: URL(filePath: witness))
        expectLost { _ = try home.open() }
        try FileManager.default.removeItem(atPath: home.path)
        expectLost { _ = try home.open() }
    }

    private func expectLost(_ body: () throws -> Void) {
        let error = #expect(throws: StorageError.self) { try body() }
        guard case .lost? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `the log of another file is recognised`() async throws {
        let home = try await Self.filled()
        let store = try home.open()
        try await Self.fill(store, entries: 5)
        let crashed = try Self.copy(home)
        await store.close()
        let other = try TemporaryStore().open()
        try await Self.fill(other, entries: 5)
        let log = try Data(contentsOf: URL(filePath: other.path + "-wal"))
        await other.close()
        try log.write(to: URL(filePath: crashed.path + "-wal"))
        let error = #expect(throws: StorageError.self) { try crashed.open() }
        #expect("\(try #require(error))".contains("belongs to another file"))
    }

    @Test func `a page damaged while the relay runs is not served and ends all writing`()
        async throws
    {
        let home = try await Self.filled(entries: 2000)
        var settings = StoreSettings.forTests
        settings.quickCheckBytes = 0
        let store = try home.open(settings)
        let size = LogTrimmer.size(of: home.path)
        // Damages pages in the middle of the log table, which opening does not read.
        for page in size / 4096 / 3..<size / 4096 * 2 / 3 {
            try Self.flip(home.path, byte: page * 4096 + 2000, bit: 1)
        }
        await #expect(throws: StorageError.self) {
            _ = try await store.entries(after: .start, limit: 5000)
        }
        await #expect(throws: StorageError.self) { try await Self.fill(store, entries: 1) }
        #expect(await store.close() != nil)
    }

    /// Reading unmapped memory through /proc/self/mem fails with EIO, as a bad sector does.
    @Test func `a page that the disk cannot read ends all writing and is not called damage`()
        async throws
    {
        let home = try await Self.filled(entries: 2000)
        var settings = StoreSettings.forTests
        settings.quickCheckBytes = 0
        let store = try home.open(settings)
        // The reader opens the file when it is first asked.
        #expect(try await store.entries(after: .start, limit: 1).count == 1)
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        try #require(memory >= 0)
        defer { close(memory) }
        var file = stat()
        try #require(stat(home.path, &file) == 0)
        for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
            var other = stat()
            guard let descriptor = Int32(name), fstat(descriptor, &other) == 0,
                other.st_ino == file.st_ino, other.st_dev == file.st_dev
            else { continue }
            dup2(memory, descriptor)
        }
        let error = await #expect(throws: StorageError.self) {
            _ = try await store.entries(after: .start, limit: 5000)
        }
        #expect("\(try #require(error))".contains("disk I/O error"))
        let end = try #require(await store.close())
        #expect("\(end)".contains("a page could not be read"))
    }

    @Test func `an old file without checksums gets them and loses nothing`()
        async throws
    {
        let home = try TemporaryStore()
        // A file that reserves no bytes for checksums, as plain SQLite creates it.
        let queue = try DatabaseQueue(path: home.path)
        try await queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = WAL") }
        try queue.close()
        #expect(try Data(contentsOf: URL(filePath: home.path))[20] == 0)
        var settings = StoreSettings.forTests
        settings.sealedBytes = 0
        let plain = try home.open(settings)
        try await Self.fill(plain, entries: 20)
        await plain.close()
        let before = try Self.content(home.path).filter { $0.hasPrefix("logEntry") }
        let sealed = try home.open()
        await sealed.close()
        #expect(try Data(contentsOf: URL(filePath: home.path))[20] == 8)
        #expect(try Self.content(home.path).filter { $0.hasPrefix("logEntry") } == before)
    }

    // MARK: Restoring

    @Test func `a restored store has a new identity and continues where the copy ends`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try home.open()
        try await Self.fill(store, entries: 10)
        let backup = home.path + ".backup"
        _ = try RelayStore.backUp(path: home.path, to: backup)
        #expect(throws: StorageError.self, "a backup is no store") {
            try RelayStore.open(path: backup)
        }
        #expect(try RelayStore.check(path: backup).problems == [])
        try await Self.fill(store, entries: 7)
        let identity = store.storeIdentity
        // The store is in use, so the restore is refused.
        #expect(throws: StorageError.self) {
            try RelayStore.restore(from: backup, to: home.path, over: .movedAside)
        }
        #expect(throws: StorageError.self, "also before there is a copy") {
            try RelayStore.checkRestoring(to: home.path, over: .movedAside)
        }
        let crashed = try Self.copy(home)
        await store.close()
        try RelayStore.checkRestoring(to: home.path, over: .movedAside)
        #expect(throws: StorageError.self) {
            try RelayStore.checkRestoring(to: home.path, over: .nothing)
        }
        try RelayStore.checkRestoring(to: home.path + ".new", over: .nothing)
        #expect(!FileManager.default.fileExists(atPath: home.path + ".new.lock"))
        #expect(throws: StorageError.self) {
            try RelayStore.restore(from: backup, to: crashed.path)
        }
        let report = try RelayStore.restore(
            from: backup, to: crashed.path, over: .movedAside)
        #expect(report.head == LogPosition(10))
        #expect(!FileManager.default.fileExists(atPath: crashed.path + "-wal"))
        #expect(FileManager.default.fileExists(atPath: crashed.path + "-replaced-wal"))
        let restored = try crashed.open()
        #expect(restored.storeIdentity != identity)
        #expect(try await restored.head() == LogPosition(10))
        try await Self.fill(restored, entries: 1)
        await restored.close()
        #expect(try RelayStore.check(path: crashed.path).problems == [])
    }

    /// A restore moves the old file aside, then the files that belong to it, and then gives the new
    /// file its name.
    @Test(arguments: 0...3)
    func `an interrupted restore is completed by another one`(moved: Int) async throws {
        let files = FileManager.default
        let home = try TemporaryStore()
        let store = try home.open()
        try await Self.fill(store, entries: 10)
        let backup = home.path + ".backup"
        _ = try RelayStore.backUp(path: home.path, to: backup)
        try await Self.fill(store, entries: 7)
        let crashed = try Self.copy(home)
        await store.close()
        let endings = ["", "-wal", StoreWitness.ending]
        for ending in endings.prefix(moved) {
            try files.moveItem(
                atPath: crashed.path + ending, toPath: crashed.path + "-replaced" + ending)
        }
        try files.copyItem(atPath: backup, toPath: crashed.path + ".restored")
        if moved > 0 {
            var settings = StoreSettings.forTests
            for creation in [StoreCreation.whenMissing, .never] {
                settings.creation = creation
                let error = #expect(throws: StorageError.self) { try crashed.open(settings) }
                #expect("\(String(describing: error))".contains("a restore was interrupted"))
            }
        }
        let report = try RelayStore.restore(
            from: backup, to: crashed.path, over: .movedAside)
        #expect(report.head == LogPosition(10))
        for ending in endings {
            #expect(files.fileExists(atPath: crashed.path + "-replaced" + ending))
        }
        #expect(!files.fileExists(atPath: crashed.path + ".restored"))
        let restored = try crashed.open()
        #expect(try await restored.head() == LogPosition(10))
        await restored.close()
        // The store that was moved aside must not be overwritten by another one.
        #expect(throws: StorageError.self) {
            try RelayStore.restore(from: backup, to: crashed.path, over: .movedAside)
        }
    }

    /// The left-over file is all that shows an interrupted restore, so a failing restore must keep
    /// it.
    @Test func `the remains of an interrupted restore stay while another one fails`() async throws {
        let files = FileManager.default
        let home = try await Self.filled(entries: 10)
        let backup = home.path + ".backup"
        _ = try RelayStore.backUp(path: home.path, to: backup)
        let crashed = try TemporaryStore(in: .memory)
        let left = crashed.path + ".restored"
        try files.copyItem(atPath: backup, toPath: left)
        let bad = home.path + ".bad"
        try files.copyItem(atPath: backup, toPath: bad)
        try Self.flip(bad, byte: 5 * 4096 + 4000, bit: 2)
        #expect(throws: StorageError.self) {
            try RelayStore.restore(from: bad, to: crashed.path, over: .movedAside)
        }
        #expect(files.fileExists(atPath: left))
        var settings = StoreSettings.forTests
        settings.creation = .whenMissing
        let error = #expect(throws: StorageError.self) { try crashed.open(settings) }
        #expect("\(String(describing: error))".contains("a restore was interrupted"))
        // The left-over copy is complete, and may itself be restored.
        let report = try RelayStore.restore(from: left, to: crashed.path, over: .movedAside)
        #expect(report.head == LogPosition(10))
        #expect(!files.fileExists(atPath: left))
        let restored = try crashed.open()
        #expect(try await restored.head() == LogPosition(10))
        await restored.close()
    }

    @Test func `a copy that is not sound is not restored`() async throws {
        let home = try await Self.filled()
        let backup = home.path + ".backup"
        _ = try RelayStore.backUp(path: home.path, to: backup)
        try Self.flip(backup, byte: 5 * 4096 + 4000, bit: 2)
        #expect(throws: StorageError.self) {
            try RelayStore.restore(from: backup, to: home.path + ".new")
        }
        let folder = URL(filePath: home.path).deletingLastPathComponent().path
        let left = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(left.filter { $0.contains(".new") } == [])
    }
}
