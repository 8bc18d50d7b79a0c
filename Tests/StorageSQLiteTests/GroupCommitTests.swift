import Foundation
import GRDB
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

@Suite struct GroupCommitTests {
    private struct Refusal: Error, Equatable {}

    private static func append(
        _ name: String, to store: RelayStore
    ) async throws -> [AppendOutcome] {
        try await store.append(
            [Sample.unkeyed(name)], container: Sample.container, source: Sample.source,
            at: Sample.moment(0))
    }

    @Test func `a failing caller does not harm its neighbours and leaves no gap`() async throws {
        let store = try await TemporaryStore().openReady()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    if number.isMultiple(of: 3) {
                        await #expect(throws: Refusal()) { try await Self.fail(in: store) }
                    } else {
                        await #expect(throws: Never.self) {
                            _ = try await Self.append("\(number)", to: store)
                        }
                    }
                }
            }
        }
        let entries = try await store.storedEntries(after: .start, limit: 1000)
        #expect(entries.map(\.position) == (1...133).map { LogPosition($0) })
        #expect(try await store.entries(after: .start, limit: 1000) == entries)
        await store.close()
    }

    /// Appends an entry in a closure that then fails.
    private static func fail(in store: RelayStore) async throws {
        try await store.write { commit in
            let body = LogEntryBody.devicesEnded(serials: [1])
            _ = try commit.append(
                body, storedBody: try body.storedBody(), in: try commit.container(Sample.container),
                at: Sample.moment(0))
            throw Refusal()
        }
    }

    @Test func `a commit knows a type that one of its requests added, unless that was undone`()
        async throws
    {
        let store = try await TemporaryStore().openReady()
        let type: RecordType = Sample.identifier("Artwork")
        let additions = [RecordTypeDefinition(type, isInferred: true)]
        let found = try await store.write { commit -> [Bool] in
            let container = try commit.container(Sample.container)
            var found = [try commit.isKept(type, of: container)]
            do {
                try commit.attempt { commit -> (value: Void, keep: Bool) in
                    try commit.extendSchema(of: container, with: additions)
                    found.append(try commit.isKept(type, of: container))
                    throw Refusal()
                }
            } catch is Refusal {
                found.append(try commit.isKept(type, of: container))
            }
            try commit.extendSchema(of: container, with: additions)
            found.append(try commit.isKept(type, of: container))
            return found
        }
        #expect(found == [false, true, false, true])
        await store.close()
    }

    @Test func `many callers share few commits`() async throws {
        let store = try await TemporaryStore().openReady()
        let before = store.commitCount
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<256 {
                group.addTask { _ = try await Self.append("\(number)", to: store) }
            }
            try await group.waitForAll()
        }
        let commits = store.commitCount - before
        #expect(commits < 128)
        await store.close()
    }

    @Test func `beyond the bound appends are refused but settling is not`() throws {
        var settings = StoreSettings.forTests
        settings.waitingChanges = 10
        settings.waitingBytes = 1000
        let inbox = WriteInbox(settings: settings)
        func submit(_ lane: WriteRequest.Lane, _ changes: Int, _ bytes: Int) -> StorageError? {
            inbox.submit([
                WriteRequest(
                    lane: lane, container: nil, changes: changes, bytes: bytes,
                    perform: { _ in {} }, fail: { _ in })
            ])
        }
        // A batch that is larger than the bound is written alone.
        #expect(submit(.intake, 50, 10) == nil)
        #expect(submit(.intake, 1, 10) == .overloaded("50 changes are waiting to be written"))
        #expect(inbox.nextBatch(after: 1)?.count == 1)
        #expect(submit(.intake, 6, 10) == nil)
        #expect(submit(.intake, 5, 10) == .overloaded("6 changes are waiting to be written"))
        #expect(submit(.own, 5, 10) == nil)
        #expect(submit(.own, 1, 2000) == .overloaded("20 bytes are waiting to be written"))
        #expect(inbox.nextBatch(after: 1)?.map(\.changes) == [6, 5])
        inbox.end(.closed("done"))
        #expect(submit(.own, 1, 1) == .closed("done"))
        #expect(inbox.nextBatch(after: 1)?.count == nil)
    }

    @Test func `a full disk refuses writes, and writing continues once there is room`() async throws
    {
        let home = try TemporaryStore()
        await (try home.openReady()).close()
        var settings = StoreSettings.forTests
        settings.maximumPages = 240
        let store = try home.open(settings)
        @Sendable func parked(_ number: Int) -> ParkedChange {
            ParkedChange(
                container: Sample.container, source: Sample.source, reason: "",
                path: "\(number)", body: Array(repeating: 1, count: 40_000), headers: [:],
                receivedAt: Sample.moment(0))
        }
        var numbers: [UInt64] = []
        let error = await #expect(throws: StorageError.self) {
            while numbers.count < 100 {
                numbers.append(try await store.park(parked(numbers.count)))
            }
        }
        #expect(error?.isNoRoom == true)
        #expect(numbers.count > 5)
        // Small requests in the same commit succeed although a large one finds no room.
        let large = Task { try await store.park(parked(200)) }
        let small = Task { try await Self.append("small", to: store) }
        let refused = await #expect(throws: StorageError.self) { try await large.value }
        #expect(refused?.isNoRoom == true)
        #expect(try await small.value == [.appended(LogPosition(1))])
        #expect(try await store.deleteParkedChange(numbers[0], of: Sample.container))
        numbers.append(try await store.park(parked(201)))
        #expect(
            try await store.parkedChanges(of: Sample.container, after: 0, limit: 100).count
                == numbers.count - 1)
        await store.close()
    }

    @Test func `below the disk reserve appends are refused but settling is not`() async throws {
        let home = try TemporaryStore()
        await (try home.openReady()).close()
        var settings = StoreSettings.forTests
        settings.diskReserveBytes = .max
        let store = try home.open(settings)
        let error = await #expect(throws: StorageError.self) {
            try await Self.append("a", to: store)
        }
        #expect(error?.isNoRoom == true)
        try await store.settle(SettledStep(from: .start, to: .start))
        await store.close()
    }

    private static func contents(_ path: String) throws -> [Data] {
        try ["", "-wal"].map { try Data(contentsOf: URL(filePath: path + $0)) }
    }

    @Test func `a failing checkpoint ends all writing`() async throws {
        let home = try TemporaryStore()
        await (try home.openReady()).close()
        let path = home.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            var settings = StoreSettings.forTests
            settings.checkpointPages = 200
            let store = try RelayStore.open(path: path, settings: settings)
            // The write-ahead log stays below this limit; the database file would exceed it.
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 3 << 20, rlim_max: .max)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            var number = 0
            let error = await #expect(throws: StorageError.self) {
                while number < 2000 {
                    number += 1
                    _ = try await store.park(
                        ParkedChange(
                            container: Sample.container, source: Sample.source, reason: "",
                            path: "\(number)", body: Array(repeating: 1, count: 20_000),
                            headers: [:], receivedAt: Sample.moment(0)))
                }
            }
            #expect(error?.description.contains("a checkpoint failed") == true)
            #expect(store.footprint.walBytes < 2 << 20)
            let before = try Self.contents(path)
            await store.close()
            #expect(try Self.contents(path) == before)
        }
        let store = try home.open()
        let parked = try await store.parkedChanges(of: Sample.container, after: 0, limit: 9999)
        #expect(parked.count > 50)
        await store.close()
    }

    @Test func `an orderly end reports a failing checkpoint`() async throws {
        let home = try TemporaryStore()
        await (try home.openReady()).close()
        let path = home.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            var settings = StoreSettings.forTests
            settings.checkpointPages = 0
            let store = try RelayStore.open(path: path, settings: settings)
            for number in 0..<20 {
                _ = try await store.park(
                    ParkedChange(
                        container: Sample.container, source: Sample.source, reason: "",
                        path: "\(number)", body: Array(repeating: 1, count: 20_000),
                        headers: [:], receivedAt: Sample.moment(0)))
            }
            // The file cannot grow any more.
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(
                rlim_cur: rlim_t(store.footprint.fileBytes + 4096), rlim_max: .max)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            let failure = await store.close()
            #expect(failure?.description.contains("the last checkpoint failed") == true)
        }
        let store = try home.open()
        let parked = try await store.parkedChanges(of: Sample.container, after: 0, limit: 9999)
        #expect(parked.count == 20)
        #expect(await store.close() == nil)
    }

    @Test func `damage that a reader finds ends all writing`() async throws {
        let home = try TemporaryStore()
        let first = try await home.openReady()
        _ = try await Self.append("before", to: first)
        await first.close()
        let queue = try DatabaseQueue(path: home.path)
        let root = try await queue.read { db in
            try UInt64.fetchOne(
                db, sql: "SELECT rootpage FROM sqlite_schema WHERE name = 'receiptBlock'")
        }
        try queue.close()
        let store = try home.open()
        let file = try #require(FileHandle(forWritingAtPath: home.path))
        try file.seek(toOffset: (try #require(root) - 1) * 4096)
        try file.write(contentsOf: Data(repeating: 0xFF, count: 4096))
        try file.close()
        let found = await #expect(throws: StorageError.self) {
            try await store.receipts(matching: ReceiptFilter(), limit: 1)
        }
        #expect(found?.isDamaged == true)
        let refused = await #expect(throws: StorageError.self) {
            try await Self.append("after", to: store)
        }
        #expect(refused?.isClosed == true)
        await #expect(throws: StorageError.self) {
            try await store.waitForGrowth(beyond: LogPosition(1))
        }
        await store.close()
    }

    @Test func `a failed write ends all writing, and reading continues`() async throws {
        let home = try TemporaryStore()
        await (try home.openReady()).close()
        let path = home.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            let store = try RelayStore.open(path: path, settings: .forTests)
            _ = try await Self.append("before", to: store)
            // From here on, every write that makes a file longer fails with EFBIG.
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 1, rlim_max: .max)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            let first = await #expect(throws: StorageError.self) {
                try await Self.append("lost", to: store)
            }
            limit.rlim_cur = .max
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            let second = await #expect(throws: StorageError.self) {
                try await Self.append("refused", to: store)
            }
            #expect(first?.isClosed == true)
            let told = first.map { "\($0)" } ?? ""
            #expect(told.contains("File too large; raise the limit of a file's size"), "\(told)")
            #expect(second == first)
            await #expect(throws: StorageError.self) {
                try await store.waitForGrowth(beyond: LogPosition(1))
            }
            let read = try await store.storedEntries(after: .start, limit: 9)
            #expect(read.count == 1)
            // Closing does not write either: the log is neither folded into the file nor removed.
            let before = try Self.contents(path)
            await store.close()
            #expect(try Self.contents(path) == before)
        }
        let store = try home.open()
        #expect(try await store.head() == LogPosition(1))
        await store.close()
    }
}

extension StorageError {
    var isNoRoom: Bool { if case .noRoom = self { true } else { false } }
    var isDamaged: Bool { if case .damaged = self { true } else { false } }
    var isClosed: Bool { if case .closed = self { true } else { false } }
}
