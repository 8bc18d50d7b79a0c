import Foundation
import RelayModel
import RelayTestKit
import Storage
import Synchronization
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// A file is opened by one relay at a time, whatever names the file has.
@Suite struct StoreLockTests {
    @Test func `a symbolic link leads to the same store`() async throws {
        let home = try TemporaryStore()
        let link = home.path + "-other"
        let store = try home.open()
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: home.path)
        #expect(
            throws: StorageError.locked(path: home.path, holder: "process \(getpid())")
        ) { try RelayStore.open(path: link, settings: .forTests) }
        await store.close()
        let linked = try RelayStore.open(path: link, settings: .forTests)
        #expect(linked.path == home.path)
        await linked.close()
        #expect(!FileManager.default.fileExists(atPath: link + ".lock"))
        let nowhere = home.path + "-nowhere"
        try FileManager.default.createSymbolicLink(
            atPath: nowhere, withDestinationPath: "/tmp/belfry-nothing-is-here")
        #expect(
            throws: StorageError.inaccessible(
                path: nowhere, reason: "it is a link to a file that does not exist")
        ) { try RelayStore.open(path: nowhere, settings: .forTests) }
    }

    @Test func `a folder with two names holds one store`() async throws {
        let home = try TemporaryStore()
        let folder = URL(filePath: home.path).deletingLastPathComponent()
        let other = folder.appending(path: "again").path
        try FileManager.default.createSymbolicLink(atPath: other, withDestinationPath: folder.path)
        let store = try home.open()
        #expect(throws: StorageError.self) {
            try RelayStore.open(path: other + "/belfry.sqlite", settings: .forTests)
        }
        await store.close()
    }

    @Test func `a file with two names is refused by either, and the open one stops`() async throws {
        let home = try TemporaryStore()
        let second = home.path + "-second"
        let store = try await home.openReady()
        #expect(link(home.path, second) == 0)
        #expect(throws: StorageError.self) {
            try RelayStore.open(path: second, settings: .forTests)
        }
        // The relay that has the file open notices, and accepts nothing more.
        var taken = 0
        do {
            while taken < 100 {
                _ = try await store.append(
                    [Sample.unkeyed("a\(taken)")], container: Sample.container,
                    source: Sample.source, at: Sample.moment(0))
                taken += 1
            }
        } catch let error as StorageError {
            #expect(
                error == .closed("the file was moved, removed, exchanged or linked"))
        }
        #expect(taken < 40)
        #expect(await store.close() != nil)
        for path in [home.path, second] {
            let error = #expect(throws: StorageError.self) {
                try RelayStore.open(path: path, settings: .forTests)
            }
            #expect("\(try #require(error))".contains("the file has 2 names (hard links)"))
        }
        unlink(second)
        let again = try home.open()
        #expect(try await again.head() == LogPosition(UInt64(taken) + 1))
        await again.close()
    }

    @Test func `a log that lost its name is folded into the file, and the store stops`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        unlink(home.path + "-wal")
        var taken = 0
        do {
            while taken < 100 {
                try await Self.append("a\(taken)", to: store)
                taken += 1
            }
        } catch let error as StorageError {
            #expect("\(error)".contains("the write-ahead log was moved, removed or exchanged"))
        }
        #expect(taken < 40)
        #expect(await store.close() != nil)
        let again = try home.open()
        #expect(try await again.head() == LogPosition(UInt64(taken)))
        await again.close()
    }

    @Test func `a file whose place the system cannot look at counts as neither there nor gone`()
        throws
    {
        let home = try TemporaryStore()
        #expect(FileManager.default.createFile(atPath: home.path, contents: nil))
        let file = try #require(FileIdentity(path: home.path))
        #expect(file.isStill(at: home.path) == true)
        let other = home.path + ".other"
        #expect(FileManager.default.createFile(atPath: other, contents: nil))
        #expect(file.isStill(at: other) == false)
        #expect(file.isStill(at: home.path + ".none") == false)
        #expect(file.isStill(at: home.path + "/below") == false)
        // ENAMETOOLONG stands for the errors that a network file system or the memory may cause.
        #expect(file.isStill(at: home.path + String(repeating: "x", count: 300)) == nil)
    }

    @Test(arguments: [false, true])
    func `a witness that was removed or exchanged is put back`(isExchanged: Bool) async throws {
        let home = try TemporaryStore()
        let witness = home.path + StoreWitness.ending
        let store = try await home.openReady()
        if isExchanged {
            let other = try TemporaryStore()
            await (try await other.openReady()).close()
            #expect(rename(other.path + StoreWitness.ending, witness) == 0)
        } else {
            unlink(witness)
        }
        for number in 0..<40 { try await Self.append("a\(number)", to: store) }
        // What a crash would leave is known already.
        let known = try #require(try StoreWitness.record(of: home.path))
        #expect(known.head > LogPosition(0))
        unlink(witness)
        // An orderly end puts it back, however little was written since.
        #expect(await store.close() == nil)
        let again = try home.open()
        #expect(try await again.head() == LogPosition(40))
        await again.close()
    }

    /// A name that is not on the disk is gone after a power cut, and the next start refuses a file
    /// without its witness.
    @Test func `the name of a new witness is synced, also of one that is put back`() throws {
        let home = try TemporaryStore()
        let folders = Mutex<[String]>([])
        let record = WitnessRecord(
            identity: UUIDBytes(high: 1, low: 2), commits: 1, head: LogPosition(1), salt: 0,
            isSealed: true)
        let witness = try StoreWitness(
            of: home.path,
            syncing: { folder in
                folders.withLock { $0.append(folder) }
                return 0
            })
        let folder = URL(filePath: home.path).deletingLastPathComponent().path
        try witness.noteAtStart(record)
        #expect(folders.withLock { $0 } == [folder])
        try witness.putBack(record)
        #expect(folders.withLock { $0.count } == 1, "it was in its place")
        unlink(home.path + StoreWitness.ending)
        try witness.putBack(record)
        #expect(folders.withLock { $0 } == [folder, folder])
        #expect(StoreWitness.onDisk(folder) == 0)
        #expect(StoreWitness.onDisk(folder + "/none") == ENOENT)
    }

    private static func append(_ name: String, to store: RelayStore) async throws {
        _ = try await store.append(
            [Sample.unkeyed(name)], container: Sample.container, source: Sample.source,
            at: Sample.moment(0))
    }

    @Test func `another process cannot open the file by a new name`() async throws {
        let home = try TemporaryStore()
        let store = try home.open()
        let moved = home.path + "-moved"
        #expect(rename(home.path, moved) == 0)
        let holder = "process \(getpid()), under another name"
        await #expect(processExitsWith: .success) {
            [moved = moved as String, holder = holder as String] in
            do {
                _ = try RelayStore.open(path: moved)
                exit(1)
            } catch StorageError.locked(moved, holder) {
                exit(0)
            } catch {
                print(error)
                exit(2)
            }
        }
        #expect(rename(moved, home.path) == 0)
        await store.close()
        await (try home.open()).close()
    }

    @Test func `inspecting a file loses none of its locks`() async throws {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        _ = try RelayStore.check(path: home.path)
        _ = try RelayStore.schemaVersion(of: home.path)
        _ = try RelayStore.backUp(path: home.path, to: home.path + ".copy")
        #expect(throws: StorageError.self) { try home.open() }
        // SQLite's own locks of this file, as the kernel lists them.
        let file = try #require(FileIdentity(path: home.path))
        let kinds = Set((0..<20).flatMap { _ in StoreLock.kernelLocks(of: file).map { $0[1] } })
        #expect(kinds.isSuperset(of: ["POSIX", "FLOCK"]), "\(kinds)")
        await store.close()
    }

    @Test func `a closed store is free although a forked child has its files open`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try home.open()
        // Duplicates the descriptors, as a fork would: they refer to the same open files.
        let copies = try Self.descriptors(of: [home.path, home.path + ".lock"]).map { dup($0) }
        defer { for copy in copies { close(copy) } }
        #expect(copies.count >= 2)
        await store.close()
        await (try home.open()).close()
    }

    /// Returns the descriptors of this process that refer to one of `paths`.
    private static func descriptors(of paths: Set<String>) throws -> [Int32] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { name in
            let target = try? FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/self/fd/\(name)")
            return target.map(paths.contains) ?? false
        }.compactMap { Int32($0) }
    }
}
