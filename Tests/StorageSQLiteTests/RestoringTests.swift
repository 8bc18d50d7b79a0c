import Foundation
import RelayModel
import RelayTestKit
import Storage
import Synchronization
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// A restore whose renames fail leaves the store where it was, or says what to do.
@Suite struct RestoringTests {
    private static let endings = ["", "-wal", StoreWitness.ending]

    /// Renames files except the given ones, counted from 1.
    private final class Renames: Sendable {
        private let failing: Set<Int>
        private let count = Atomic<Int>(0)

        init(failing: Set<Int>) {
            self.failing = failing
        }

        func rename(_ from: String, _ to: String) -> Int32 {
            let number = count.add(1, ordering: .relaxed).newValue
            return failing.contains(number) ? EACCES : FileMoves.onDisk(from, to)
        }
    }

    /// Makes a store with a log beside it, as after a crash, and a backup of it.
    private static func crashed() async throws -> (home: TemporaryStore, backup: String) {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        let backup = home.path + ".backup"
        _ = try RelayStore.backUp(path: home.path, to: backup)
        _ = try await store.append(
            [ChangeToAppend(Sample.change("a"), key: nil)], container: Sample.container,
            source: Sample.source, at: Sample.moment(0))
        let crashed = try TemporaryStore(in: .memory)
        for ending in endings {
            try FileManager.default.copyItem(
                atPath: home.path + ending, toPath: crashed.path + ending)
        }
        await store.close()
        return (crashed, backup)
    }

    private static func names(beside home: TemporaryStore) throws -> Set<String> {
        let url = URL(filePath: home.path)
        let folder = url.deletingLastPathComponent().path
        return Set(
            try FileManager.default.contentsOfDirectory(atPath: folder)
                .filter { $0.hasPrefix(url.lastPathComponent) && !$0.hasSuffix(".lock") })
    }

    /// The first rename gives the new file its temporary name, the next three move the old files
    /// aside, and the last one puts the new file in its place.
    @Test(arguments: 1...5)
    func `a restore that cannot move a file leaves the store where it was`(
        failing: Int
    ) async throws {
        let (home, backup) = try await Self.crashed()
        let before = try Self.names(beside: home)
        let renames = Renames(failing: [failing])
        let error = #expect(throws: StorageError.self) {
            _ = try StoreRestoring(
                source: backup, target: home.path, over: .movedAside,
                rename: { renames.rename($0, $1) }
            ).run()
        }
        #expect(try Self.names(beside: home) == before)
        if failing > 1 {
            #expect("\(String(describing: error))".contains("everything is where it was before"))
        }
        let store = try home.open()
        #expect(try await store.head() == LogPosition(1))
        await store.close()
    }

    @Test func `a restore that cannot move the store back says which files to move`()
        async throws
    {
        let (home, backup) = try await Self.crashed()
        // The fifth puts the new file in its place, the sixth takes the witness back.
        let renames = Renames(failing: [5, 6])
        let error = #expect(throws: StorageError.self) {
            _ = try StoreRestoring(
                source: backup, target: home.path, over: .movedAside,
                rename: { renames.rename($0, $1) }
            ).run()
        }
        let told = "\(String(describing: error))"
        for ending in Self.endings {
            let move = "\(home.path)-replaced\(ending) to \(home.path)\(ending)"
            #expect(told.contains(move), "\(told)")
        }
        var settings = StoreSettings.forTests
        settings.creation = .whenMissing
        #expect(throws: StorageError.self) { try home.open(settings) }
        // The same command finishes it.
        let report = try RelayStore.restore(from: backup, to: home.path, over: .movedAside)
        #expect(report.head == .start)
        #expect(try RelayStore.check(path: home.path).problems == [])
    }
}
