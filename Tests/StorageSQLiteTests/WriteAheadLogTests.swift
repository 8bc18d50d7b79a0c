import Foundation
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// How a write-ahead log may look after a crash, and what only damage can cause.
@Suite struct WriteAheadLogTests {
    private static let frame = 4096 + 24

    /// The database file and its log, as a kill leaves them after a number of commits.
    private struct Remains {
        let file: Data
        let log: Data
        /// The witness as it was at first: a power cut may leave one that old.
        let witness: Data
        /// The length of the log in bytes after each commit.
        let ends: [Int]

        init(commits: Int) async throws {
            let home = try TemporaryStore(in: .memory)
            var settings = StoreSettings.forTests
            settings.checkpointPages = 0
            let store = try home.open(settings)
            witness = try Data(contentsOf: URL(filePath: home.path + StoreWitness.ending))
            try await store.save(
                ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
            var ends: [Int] = []
            for number in 0..<commits {
                _ = try await store.append(
                    [Sample.unkeyed("r\(number)")], container: Sample.container,
                    source: Sample.source, at: Sample.moment(0))
                ends.append(store.footprint.walBytes)
            }
            file = try Data(contentsOf: URL(filePath: home.path))
            log = try Data(contentsOf: URL(filePath: home.path + "-wal"))
            self.ends = ends
            await store.close()
        }

        /// Opens the file with `log`, and returns the head.
        func open(with log: Data) async throws -> UInt64 {
            let home = try TemporaryStore(in: .memory)
            try file.write(to: URL(filePath: home.path))
            try log.write(to: URL(filePath: home.path + "-wal"))
            try witness.write(to: URL(filePath: home.path + StoreWitness.ending))
            let store = try home.open()
            let head = try await store.head().rawValue
            await store.close()
            return head
        }
    }

    @Test func `a log that was cut anywhere opens with its complete commits`() async throws {
        let remains = try await Remains(commits: 8)
        for length in stride(from: 0, through: remains.log.count, by: 1531) {
            let head = try await remains.open(with: remains.log.prefix(length))
            // The head counts the commits that lie completely before the cut.
            #expect(head == UInt64(remains.ends.count { $0 <= length }))
        }
    }

    @Test(arguments: Seeds.all)
    func `any part of the last transaction may be missing`(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let remains = try await Remains(commits: 6)
        for _ in 0..<10 {
            var log = remains.log
            for sector in stride(from: remains.ends[4], to: log.count, by: 512)
            where generator.chance(50) {
                let end = min(sector + 512, log.count)
                log.replaceSubrange(sector..<end, with: Data(count: end - sector))
            }
            let head = try await remains.open(with: log)
            #expect(head == (log == remains.log ? 6 : 5))
        }
    }

    @Test(arguments: Seeds.all)
    func `a changed byte before the last two transactions is refused`(
        seed: UInt64
    ) async throws {
        var generator = SeededGenerator(seed: seed)
        let remains = try await Remains(commits: 6)
        for _ in 0..<10 {
            var log = remains.log
            let place = Int.random(in: 32..<remains.ends[3], using: &generator)
            log[place] ^= UInt8.random(in: 1...255, using: &generator)
            let error = await #expect(throws: StorageError.self) {
                _ = try await remains.open(with: log)
            }
            let number = (place - 32) / Self.frame + 1
            guard case .damaged(let path, let reason)? = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
            #expect(path.hasSuffix("-wal"))
            #expect(
                reason == "frame \(number) is broken, and what was committed after it would be "
                    + "lost: restore a backup")
        }
    }

    @Test func `leftovers from before the log was restarted are ignored`()
        async throws
    {
        let home = try TemporaryStore(in: .memory)
        var settings = StoreSettings.forTests
        settings.checkpointPages = 40
        let store = try await home.openReady(settings)
        for number in 0..<60 {
            _ = try await store.append(
                [Sample.unkeyed("r\(number)")], container: Sample.container,
                source: Sample.source, at: Sample.moment(0))
            let copy = try TemporaryStore(in: .memory)
            for ending in ["", "-wal", StoreWitness.ending] {
                try FileManager.default.copyItem(
                    atPath: home.path + ending, toPath: copy.path + ending)
            }
            let again = try copy.open()
            #expect(try await again.head().rawValue == UInt64(number + 1))
            await again.close()
        }
        await store.close()
    }

    // MARK: Copies of it

    @Test func `a segment of very many commits is continued after a start`() async throws {
        let home = try TemporaryStore(in: .memory)
        var settings = StoreSettings.forTests
        settings.checkpointPages = 0
        var bounds = LogSpool.Settings()
        bounds.reserveBytes = 0
        let chain = "20261125T201501Z-1a2b3c4d1a2b3c4d"
        let spool = try LogSpool(of: home.path, settings: bounds, now: { Sample.moment(1) })
        let store = try RelayStore.open(path: home.path, settings: settings, spool: spool)
        try await store.beginChain(chain)
        // More pages than a header usually names; the beginning of the header is read first.
        for _ in 0..<800 { try await store.commitNothing() }
        spool.copy()
        let before = spool.waiting
        #expect(before.count == 1 && before.first?.mark?.frame ?? 0 > 800)
        await store.close()
        let again = try LogSpool(of: home.path, settings: bounds, now: { Sample.moment(1) })
        let next = try RelayStore.open(path: home.path, settings: settings, spool: again)
        #expect(again.chainName == chain)
        #expect(again.waiting.first == before.first)
        await next.close()
    }

    @Test func `frames of a foreign log get into no segment`() async throws {
        let home = try TemporaryStore(in: .memory)
        let foreign = try await Remains(commits: 40)
        var settings = StoreSettings.forTests
        settings.checkpointPages = 0
        var bounds = LogSpool.Settings()
        bounds.reserveBytes = 0
        let spool = try LogSpool(of: home.path, settings: bounds, now: { Sample.moment(1) })
        let store = try RelayStore.open(path: home.path, settings: settings, spool: spool)
        try await store.beginChain("20261125T201501Z-1a2b3c4d1a2b3c4d")
        spool.copy()
        #expect(spool.waiting.count == 1)
        let other = home.path + ".other"
        try foreign.log.write(to: URL(filePath: other))
        #expect(rename(other, home.path + "-wal") == 0)
        // What a checkpoint would drop is in the store's own log.
        spool.copyBeforeCheckpoint(40)
        #expect(spool.waiting == [])
        #expect(spool.chainName == nil)
        #expect(spool.takeEnding() == SpoolFailure.logExchanged.description)
        // The first commit notices it, and the store ends.
        await #expect(throws: StorageError.self) {
            for _ in 0..<3 { try await store.commitNothing() }
        }
        #expect(await store.close() != nil)
    }

    // MARK: Waiting for readers

    @Test func `the writer waits less and less often for a reader that stays`() {
        var pace = TrimmingPace()
        var now = ContinuousClock.now
        #expect(pace.isDue(at: now))
        for pause in [250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 32_000] {
            pace.ended(at: now, isDone: false)
            #expect(!pace.isDue(at: now.advanced(by: .milliseconds(pause - 1))))
            now = now.advanced(by: .milliseconds(pause))
            #expect(pace.isDue(at: now))
        }
        pace.ended(at: now, isDone: true)
        #expect(!pace.isDue(at: now.advanced(by: .milliseconds(249))))
        #expect(pace.isDue(at: now.advanced(by: .milliseconds(250))))
    }
}
