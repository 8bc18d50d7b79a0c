import RelayModel
import RelayTestKit
import Storage
import Synchronization
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Containers take turns at the writer, and none fills the queue for all others.
@Suite struct WriteTurnsTests {
    private static let other = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.Music"), environment: .development)

    private static func request(
        _ container: ContainerKey?, changes: Int = 1,
        lane: WriteRequest.Lane = .intake, isLarge: Bool = false
    ) -> WriteRequest {
        WriteRequest(
            lane: lane, container: container, changes: changes, bytes: changes, isLarge: isLarge,
            perform: { _ in {} }, fail: { _ in })
    }

    @Test func `one change does not wait for all changes of another container`() {
        var lines = WriteLines()
        for _ in 0..<1000 { lines.append(Self.request(Sample.container)) }
        lines.append(Self.request(Self.other))
        lines.append(Self.request(nil, lane: .own))
        let batch = lines.take(changes: 256)
        #expect(batch.map(\.changes).reduce(0, +) == 256)
        let places = [Self.other, nil].map { party in
            batch.firstIndex { $0.container == party }
        }
        #expect(places == [32, 33])
        #expect(lines.count == 1002 - 256)
        #expect(lines.changes == 1002 - 256)
        #expect(lines.bytes == 1002 - 256)
    }

    @Test func `each container's requests keep their order, and all are taken`() {
        var lines = WriteLines()
        for number in 1...100 {
            lines.append(Self.request(Sample.container, changes: number))
            if number.isMultiple(of: 7) {
                lines.append(Self.request(Self.other, changes: number))
            }
        }
        var taken: [WriteRequest] = []
        while !lines.isEmpty { taken += lines.take(changes: 256) }
        #expect(taken.filter { $0.container == Sample.container }.map(\.changes) == Array(1...100))
        #expect(
            taken.filter { $0.container == Self.other }.map(\.changes)
                == Array(stride(from: 7, through: 100, by: 7)))
        #expect(lines.changes == 0)
        #expect(lines.bytes == 0)
        #expect(lines.take(changes: 1).isEmpty)
    }

    @Test func `commits are small while several containers write`() {
        let settings = StoreSettings.forTests
        let began = ContinuousClock.Instant.now
        let elapsed = Mutex(Duration.zero)
        let inbox = WriteInbox(settings: settings) {
            began.advanced(by: elapsed.withLock { $0 })
        }
        func fill(_ container: ContainerKey?) {
            for _ in 0..<300 { _ = inbox.submit([Self.request(container)]) }
        }
        fill(Sample.container)
        #expect(inbox.nextBatch(after: 1)?.count == settings.commitChanges)
        // The relay's own work does not count as another container.
        fill(nil)
        #expect(inbox.nextBatch(after: 1)?.count == settings.commitChanges)
        #expect(!inbox.isContended)
        #expect(inbox.submit([Self.request(Self.other)]) == nil)
        #expect(inbox.isContended)
        #expect(inbox.nextBatch(after: 1)?.count == settings.commitChangesBesideOthers)
        elapsed.withLock { $0 = Contention.remembrance + .seconds(1) }
        #expect(!inbox.isContended)
        fill(Sample.container)
        #expect(inbox.nextBatch(after: 1)?.count == settings.commitChanges)
    }

    @Test func `requests without room go back before all others, and the full line waits`() {
        var lines = WriteLines()
        for number in 1...4 { lines.append(Self.request(Sample.container, changes: number)) }
        lines.append(Self.request(Self.other, changes: 5))
        let batch = lines.take(changes: 256)
        #expect(batch.map(\.changes) == [1, 2, 3, 4, 5])
        lines.append(Self.request(nil, changes: 6, lane: .own))
        lines.append(Self.request(Sample.container, changes: 7))
        lines.takeBack(batch[2...], after: Sample.container)
        #expect(lines.count == 5)
        #expect(lines.changes == 25)
        #expect(lines.bytes == 25)
        #expect(lines.take(changes: 256).map(\.changes) == [5, 6, 3, 4, 7])
        #expect(lines.isEmpty)
        #expect(lines.bytes == 0)
    }

    @Test func `small and large requests take turns, and share no commit`() {
        var lines = WriteLines()
        for number in 1...20 {
            lines.append(Self.request(Sample.container, changes: number, isLarge: number != 3))
        }
        func take(smallFirst: Bool = false) -> [Int] {
            lines.takeApart(changes: 64, smallFirst: smallFirst).map(\.changes)
        }
        // A turn of large requests is as long as others, and requests of one line keep their order.
        #expect(take() == [1, 2])
        #expect(lines.hasSmall)
        lines.append(Self.request(Self.other, changes: 100))
        #expect(take() == [3, 100])
        lines.append(Self.request(Self.other, changes: 101))
        // The large ones have waited for one small commit.
        #expect(take() == [4, 5, 6, 7, 8, 9])
        // Small ones have waited for one large commit.
        #expect(take() == [101])
        lines.append(Self.request(nil, changes: 102))
        #expect(take(smallFirst: true) == [102])
        lines.append(Self.request(Self.other, changes: 103, isLarge: true))
        #expect(!lines.hasSmall)
        // Large requests of different lines take turns too.
        #expect(take() == [10, 11, 12])
        #expect(take() == [103])
        #expect(take() == [13, 14, 15])
        #expect(take(smallFirst: true) == [16, 17])
        #expect(take() == [18, 19])
        #expect(take() == [20])
        #expect(lines.isEmpty)
        #expect(lines.bytes == 0)
    }

    @Test func `small requests pass a large one twice at most, whatever checkpoints they wait for`()
    {
        var lines = WriteLines()
        for number in 1...3 {
            lines.append(Self.request(Sample.container, changes: 32 + number, isLarge: true))
        }
        let taken = (1...9).map { number in
            lines.append(Self.request(Self.other, changes: number))
            return lines.takeApart(changes: 64, smallFirst: true).map(\.changes)
        }
        #expect(taken == [[1], [2], [33], [3, 4], [5], [34], [6, 7], [8], [35]])
    }

    @Test func `while several containers write, large writes have commits of their own`()
        async throws
    {
        let store = try await TemporaryStore().openReady()
        try await store.write(of: Self.other) { _ in }
        // The first edits show that they are large, and the next ones are known to be.
        _ = try await Self.edit(8, in: store)
        let began = store.commitCount
        async let edits = Self.edit(3, in: store)
        async let other: Void = store.write(of: Self.other) { _ in }
        #expect(try await edits.count == 3)
        try await other
        #expect(store.commitCount - began == 2)
        await store.close()
    }

    @Test func `a commit of large entries ends early while several containers write`() async throws
    {
        let store = try await TemporaryStore().openReady()
        let first = store.commitCount
        #expect(try await Self.edit(16, in: store) == (1...16).map { LogPosition($0) })
        // Both parts are in one commit while no other container writes.
        #expect(store.commitCount - first == 1)
        try await store.write(of: Self.other) { _ in }
        let second = store.commitCount
        // Each edit is a part now, and the fourth reaches the limit.
        #expect(try await Self.edit(16, in: store) == (17...32).map { LogPosition($0) })
        #expect(store.commitCount - second == 4)
        await store.close()
    }

    @Test func `edits that look much up share no commit while several containers write`()
        async throws
    {
        let store = try await TemporaryStore().openReady()
        try await store.write(of: Self.other) { _ in }
        try await store.write(of: Sample.container) { _ in }
        for (lookups, commits) in [(0, 1), (60, 2)] as [(Int, UInt64)] {
            let before = store.commitCount
            let outcomes = try await store.write(
                Array(0..<16), .independent, of: Sample.container, besides: { _ in lookups },
                from: ()
            ) { edits, _, _ in
                edits
            }
            #expect(outcomes == Array(0..<16))
            #expect(store.commitCount - before == commits)
        }
        await store.close()
    }

    @Test func `a webhook of large changes goes in by parts while several containers write`()
        async throws
    {
        let store = try await TemporaryStore().openReady()
        let changes = (1...5).map { number in
            var change = Sample.change("large-\(number)")
            change.after = RecordImage(["text": .string(String(repeating: "x", count: 400_000))])
            return ChangeToAppend(change, key: nil)
        }
        func append(_ some: ArraySlice<ChangeToAppend>) async throws -> [AppendOutcome] {
            try await store.append(
                Array(some), container: Sample.container, source: Sample.source,
                at: Sample.moment(0))
        }
        #expect(try await append(changes[...]) == (1...5).map { .appended(LogPosition($0)) })
        try await store.write(of: Self.other) { _ in }
        #expect(try await append(changes[...]) == (6...8).map { .appended(LogPosition($0)) })
        #expect(try await append(changes[3...]) == (9...10).map { .appended(LogPosition($0)) })
        await store.close()
    }

    /// Makes edits that append 300 kB each, and returns their positions.
    private static func edit(_ count: Int, in store: RelayStore) async throws -> [LogPosition] {
        let text = String(repeating: "x", count: 300_000)
        return try await store.write(
            Array(0..<count), .independent, of: Sample.container, from: ()
        ) { edits, _, commit in
            let container = try commit.container(Sample.container)
            return try edits.map { _ in
                try commit.append(
                    .devicesEnded(serials: []), storedBody: text, in: container,
                    at: Sample.moment(0))
            }
        }
    }

    @Test func `while others wait a container only gets what is left`() {
        var settings = StoreSettings.forTests
        settings.waitingChanges = 100
        settings.waitingBytes = 100
        let inbox = WriteInbox(settings: settings)
        #expect(inbox.submit([Self.request(Sample.container, changes: 50)]) == nil)
        #expect(inbox.submit([Self.request(Self.other, changes: 10)]) == nil)
        #expect(
            inbox.submit([Self.request(Sample.container)])
                == .overloaded(
                    "50 changes of the container are waiting to be written, as well as those of "
                        + "others"
                ))
        // A container with few changes is not refused because of the others' changes.
        #expect(inbox.submit([Self.request(Self.other, changes: 10)]) == nil)
        // Neither bound refuses the relay's own work.
        #expect(inbox.submit([Self.request(nil, changes: 100, lane: .own)]) == nil)
        #expect(inbox.submit([Self.request(Sample.container, changes: 5, lane: .own)]) == nil)
    }

    @Test func `a container alone gets all the room`() {
        var settings = StoreSettings.forTests
        settings.waitingChanges = 100
        let inbox = WriteInbox(settings: settings)
        #expect(inbox.submit([Self.request(nil, changes: 1, lane: .own)]) == nil)
        #expect(inbox.submit([Self.request(Sample.container, changes: 90)]) == nil)
        #expect(inbox.submit([Self.request(Sample.container, changes: 9)]) == nil)
        #expect(
            inbox.submit([Self.request(Sample.container)])
                == .overloaded("100 changes are waiting to be written"))
    }

    @Test func `the parts of one request are accepted all or none, and take turns`() {
        var settings = StoreSettings.forTests
        settings.waitingChanges = 100
        let inbox = WriteInbox(settings: settings)
        func parts(_ count: Int) -> [WriteRequest] {
            (0..<count).map { _ in Self.request(Sample.container, changes: 32) }
        }
        #expect(inbox.submit([Self.request(Self.other)]) == nil)
        #expect(
            inbox.submit(parts(4)) == .overloaded("1 change is waiting to be written"))
        #expect(inbox.nextBatch(after: 1)?.count == 1)
        // A request that is larger than the bound is written alone.
        #expect(inbox.submit(parts(4)) == nil)
        #expect(inbox.nextBatch(after: 1)?.count == 2)
        #expect(inbox.submit([Self.request(Self.other)]) == nil)
        #expect(
            inbox.nextBatch(after: 1)?.map(\.container)
                == [Sample.container, Self.other, Sample.container])
    }

    @Test func `turning away refuses all waiting requests at once, and later ones may wait`() {
        let inbox = WriteInbox(settings: .forTests)
        let refused = Mutex<[StorageError]>([])
        for container in [Sample.container, Self.other] {
            let request = WriteRequest(
                lane: .intake, container: container, changes: 1, bytes: 1, perform: { _ in {} }
            ) { error in
                guard let error = error as? StorageError else { return }
                refused.withLock { $0.append(error) }
            }
            #expect(inbox.submit([request]) == nil)
        }
        inbox.turnAway(.unavailable("it is away"))
        let error = StorageError.unavailable("it is away")
        #expect(refused.withLock { $0 } == [error, error])
        #expect(inbox.submit([Self.request(Sample.container)]) == nil)
        #expect(inbox.nextBatch(after: 1)?.count == 1)
    }
}
