import Fanout
import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// A judge that runs its open jobs only when the follower waits.
private final class ToldJudge: SideJudge {
    private struct State {
        var open: [JudgingJob] = []
        var judged: [JudgingJob] = []
        var most = 0
    }

    private let state = Mutex(State())
    /// Whether a wait runs the open jobs.
    private let yields: Bool

    init(yields: Bool = true) { self.yields = yields }

    /// The greatest number of jobs that were open at once.
    var most: Int { state.withLock { $0.most } }

    func judge(_ job: JudgingJob) {
        state.withLock { state in
            state.open.append(job)
            state.most = max(state.most, state.open.count)
        }
    }

    func takeJudged() -> [JudgingJob] {
        state.withLock { state in
            defer { state.judged = [] }
            return state.judged
        }
    }

    func wait() async { if yields { judgeAll() } }

    private func judgeAll() {
        let jobs = state.withLock { state in
            defer { state.open = [] }
            return state.open
        }
        // Runs the jobs in an order that the follower does not expect.
        for job in jobs.reversed() { job.run(again: {}) }
        state.withLock { $0.judged += jobs.reversed() }
    }
}

/// A change with dear conditions is judged beside the log, and owes the same as in the log's turn.
@Suite struct BesideLogTests {
    private struct Finished: Error {}

    /// Records the batches that a follower hands over, in order.
    private actor Taker {
        private(set) var batches: [OwedBatch] = []
        private let head: LogPosition
        private var putOff: Set<LogPosition> = []

        init(head: LogPosition) { self.head = head }

        func take(_ batch: OwedBatch) throws {
            batches.append(batch)
            if batch.putsOff, let position = batch.finished { putOff.insert(position) }
            if let change = batch.madeUp {
                let wasPutOff = putOff.remove(change.position) != nil
                #expect(wasPutOff, "made up what was not put off")
            }
            let finished = batches.compactMap(\.finished).max() ?? .start
            if finished >= head, putOff.isEmpty { throw Finished() }
        }
    }

    private static let loud = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.Loud"), environment: .development)
    private static let dear = "SUBQUERY(a, $x, SUBQUERY(a, $y, $x == $y).@count > 0).@count > 0"
    private static let logger = Logger.silent

    private static func settings(_ key: ContainerKey) -> ContainerSettings {
        ContainerSettings(key: key, topics: ["com.example.Art"])
    }

    private static func owner(_ container: ContainerKey) -> SubscriptionOwner {
        SubscriptionOwner(
            container: container, database: .public, user: Fixtures.identifier("alice"))
    }

    private static func store() async throws -> RelayStore {
        let store = try TemporaryStore().open()
        for (number, container) in [Fixtures.container, loud].enumerated() {
            try await store.save(settings(container), at: Fixtures.moment)
            _ = try await store.register(
                Fixtures.device("phone", token: number + 1, in: container), at: Fixtures.moment)
        }
        var plain = Fixtures.subscription("plain")
        plain.notificationInfo.alertBody = "hello"
        var dear = Fixtures.subscription("dear", where: Self.dear, in: loud)
        dear.notificationInfo.alertBody = "hello"
        for subscription in [plain, dear] {
            try await edit(.create(subscription), of: subscription.container, in: store)
        }
        return store
    }

    private static func edit(
        _ edit: SubscriptionEdit, of container: ContainerKey, in store: RelayStore
    ) async throws {
        _ = try await store.edit(
            [edit], of: owner(container), atomicity: .independent, at: Fixtures.moment)
    }

    private static func post(
        _ name: String, of container: ContainerKey, heavy: Bool = false, to store: RelayStore
    ) async throws {
        var change = Fixtures.change(.create, name)
        if heavy { change.after = RecordImage(["a": .list((0..<50).map { .integer($0) })]) }
        _ = try await store.append(
            [ChangeToAppend(change, key: nil)], container: container,
            source: Fixtures.identifier("test"), at: Fixtures.moment)
    }

    private static func follow(
        _ store: RelayStore, beside: BesideLog?, from mark: ProgressMark = .start
    ) async throws -> [OwedBatch] {
        let taker = Taker(head: try await store.head())
        var follower = Follower(
            log: store, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: 7, clock: ContinuousClock(), settings: { settings($0) }, logger: logger,
            beside: beside, take: { try await taker.take($0) })
        try await follower.recover(at: mark, from: store)
        do {
            try await follower.follow(from: mark)
        } catch is Finished {}
        return await taker.batches
    }

    /// Returns what each subscription owes for each change, directly or by ranges.
    private static func owed(_ batches: [OwedBatch]) -> Set<String> {
        let direct = batches.flatMap(\.deliveries).map {
            "\($0.delivery.ordinal.position) \($0.subscriptionSerial)"
        }
        let ranges = batches.flatMap { $0.ranges + ($0.madeUp?.ranges ?? []) }.flatMap { range in
            range.serials.map { "\(range.position) \($0)" }
        }
        #expect(Set(direct + ranges).count == direct.count + ranges.count, "owed twice")
        return Set(direct + ranges)
    }

    @Test func `others pass a change that takes long to judge, and it owes the same`()
        async throws
    {
        let store = try await Self.store()
        try await Self.post("a1", of: Fixtures.container, to: store)
        try await Self.post("b1", of: Self.loud, heavy: true, to: store)
        try await Self.post("a2", of: Fixtures.container, to: store)
        let first = try await store.head()
        // The subscription is replaced after that change, and again before the next one.
        try await Self.edit(.delete(Fixtures.identifier("dear")), of: Self.loud, in: store)
        try await Self.post("b2", of: Self.loud, heavy: true, to: store)
        var again = Fixtures.subscription("again", where: Self.dear, in: Self.loud)
        again.notificationInfo.alertBody = "hello"
        try await Self.edit(.create(again), of: Self.loud, in: store)
        try await Self.post("b3", of: Self.loud, heavy: true, to: store)
        try await Self.post("a3", of: Fixtures.container, to: store)

        let alone = try await Self.follow(store, beside: nil)
        #expect(alone.allSatisfy { !$0.putsOff && $0.madeUp == nil })
        let judge = ToldJudge()
        let beside = try await Self.follow(
            store, beside: BesideLog(judge, window: 100, stepsInTurn: 1000))
        #expect(Self.owed(beside) == Self.owed(alone))
        #expect(Self.owed(alone).count == 5)

        // Every delivery of the other container is handed over before any change of the loud one
        // is made up.
        let places = beside.indices
        let last = try #require(places.last { !beside[$0].deliveries.isEmpty })
        let made = try #require(places.first { beside[$0].madeUp != nil })
        #expect(last < made)
        // While the first change is judged, the log is followed for all containers but its own.
        let dear = LogPosition(first.rawValue - 1)
        #expect(beside.first { $0.putsOff }?.behind == [Self.loud: dear])
        #expect(beside.last?.behind == [:])
        // The later changes of the container wait, each for the one before it.
        #expect(judge.most == 1)
        await store.close()
    }

    /// The position of the registration is handed over before the registration is worked.
    @Test func `a badge whose registration waited is handed over with what it waited for`()
        async throws
    {
        let store = try await Self.store()
        try await Self.post("a1", of: Fixtures.container, to: store)
        try await Self.post("b1", of: Self.loud, heavy: true, to: store)
        try await Self.post("a2", of: Fixtures.container, to: store)
        let phone = Fixtures.device("phone", token: 2, in: Self.loud)
        var sparing = DeviceSparing()
        sparing.badge = 0
        _ = try await store.register(phone, named: .device, sparing, at: Fixtures.moment)
        try await Self.post("a3", of: Fixtures.container, to: store)
        let batches = try await Self.follow(
            store, beside: BesideLog(ToldJudge(), window: 100, stepsInTurn: 1000))
        let holder = BadgeHolder(container: Self.loud, deviceID: phone.id, owner: phone.owner)
        #expect(batches.compactMap(\.madeUp?.badges) == [[holder: 0]])
        let isKept = batches.contains { !$0.badges.isEmpty }
        #expect(!isKept)
        await store.close()
    }

    @Test func `deliveries that pass a change beside the log fit the window`() async throws {
        let store = try await Self.store()
        try await Self.post("a0", of: Fixtures.container, to: store)
        try await Self.post("b1", of: Self.loud, heavy: true, to: store)
        for number in 1...600 {
            try await Self.post("a\(number)", of: Fixtures.container, to: store)
        }
        let batches = try await Self.follow(
            store, beside: BesideLog(ToldJudge(), window: 20, stepsInTurn: 1000))
        #expect(Self.owed(batches).count == 602)
        let put = try #require(batches.firstIndex { $0.putsOff })
        let made = try #require(batches.firstIndex { $0.madeUp != nil })
        #expect(batches[put..<made].reduce(0) { $0 + $1.deliveries.count } <= 10)
        await store.close()
    }

    @Test func `changes beside the log leave half of the room to those that pass`() async throws {
        let store = try await Self.store()
        try await Self.post("a0", of: Fixtures.container, to: store)
        for number in 1...40 {
            try await Self.post("b\(number)", of: Self.loud, heavy: number % 3 == 0, to: store)
        }
        let batches = try await Self.follow(
            store, beside: BesideLog(ToldJudge(), window: 64, stepsInTurn: 1000))
        #expect(Self.owed(batches) == Self.owed(try await Self.follow(store, beside: nil)))
        var open = 0
        for batch in batches {
            if batch.putsOff { open += 1 }
            if batch.madeUp != nil { open -= 1 }
            #expect(open <= 16)
        }
        await store.close()
    }

    @Test func `others pass a hundred changes of one container`() async throws {
        let store = try await Self.store()
        try await Self.post("a0", of: Fixtures.container, to: store)
        for number in 1...100 {
            try await Self.post("b\(number)", of: Self.loud, heavy: true, to: store)
        }
        try await Self.post("a1", of: Fixtures.container, to: store)
        let last = try await store.head()
        let batches = try await Self.follow(
            store, beside: BesideLog(ToldJudge(), window: 4096, stepsInTurn: 1000))
        #expect(Self.owed(batches).count == 102)
        let passing = try #require(
            batches.firstIndex { $0.deliveries.contains { $0.delivery.ordinal.position == last } })
        let made = try #require(batches.firstIndex { $0.madeUp != nil })
        #expect(passing < made)
        await store.close()
    }

    @Test func `a container that is alone uses the log's turn`() async throws {
        let store = try await Self.store()
        for number in 1...3 {
            try await Self.post("b\(number)", of: Self.loud, heavy: true, to: store)
        }
        let batches = try await Self.follow(
            store, beside: BesideLog(ToldJudge(yields: false), window: 100, stepsInTurn: 1000))
        #expect(batches.allSatisfy { !$0.putsOff })
        #expect(Self.owed(batches).count == 3)
        await store.close()
    }

    @Test func `a follower that ends makes up what was judged, so that nothing is owed twice`()
        async throws
    {
        let store = try await Self.store()
        try await Self.post("a1", of: Fixtures.container, to: store)
        try await Self.post("b1", of: Self.loud, heavy: true, to: store)
        try await Self.post("a2", of: Fixtures.container, to: store)
        let head = try await store.head()
        let batches = Mutex<[OwedBatch]>([])
        let (reached, signal) = AsyncStream<Void>.makeStream()
        let judge = ToldJudge(yields: true)
        let following = Task {
            var follower = Follower(
                log: store, progress: store,
                identity: DeliveryIdentity(store: store.storeIdentity), indexSeed: 7,
                clock: ContinuousClock(), settings: { Self.settings($0) }, logger: Self.logger,
                beside: BesideLog(judge, window: 100, stepsInTurn: 1000),
                take: { batch in
                    batches.withLock { $0.append(batch) }
                    if batch.finished == head { signal.yield() }
                })
            try await follower.recover(at: .start, from: store)
            try await follower.follow(from: .start)
        }
        for await _ in reached { break }
        following.cancel()
        await #expect(throws: CancellationError.self) { try await following.value }
        #expect(batches.withLock { $0.count { $0.madeUp != nil } } == 1)
        await store.close()
    }
}
