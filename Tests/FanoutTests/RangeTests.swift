import Fanout
import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// A huge fan-out in ranges owes the same as in the log's turn.
@Suite struct RangeTests {
    private struct Finished: Error {}

    /// Collects what a follower and a range worker hand over.
    private actor Taker {
        private(set) var deliveries: [OwedDelivery] = []
        private(set) var ranges: [NewRange] = []
        private(set) var finishedRanges: [UInt64] = []
        private(set) var counts: [UInt64: Int] = [:]
        private let head: LogPosition

        init(head: LogPosition) {
            self.head = head
        }

        func take(_ batch: OwedBatch) throws {
            deliveries += batch.deliveries
            ranges += batch.ranges
            if batch.finished == head { throw Finished() }
        }

        func take(_ batch: RangeBatch) {
            deliveries += batch.deliveries
            counts[batch.id, default: 0] += batch.deliveries.count
            if batch.isLast { finishedRanges.append(batch.id) }
        }
    }

    private static let logger = Logger.silent
    private static let settings = ContainerSettings(
        key: Fixtures.container, topics: ["com.example.Art"])

    /// Makes a store with users who have devices and subscriptions, and one change that fires all
    /// of them.
    private static func store(_ generator: inout SeededGenerator) async throws -> RelayStore {
        let store = try TemporaryStore().open()
        try await store.save(settings, at: Fixtures.moment)
        var token = 0
        for user in 0..<30 {
            let owner = "user\(user)"
            for device in 0..<Int.random(in: 0...3, using: &generator) {
                token += 1
                _ = try await store.register(
                    Fixtures.device("d\(user)-\(device)", of: owner, token: token),
                    at: Fixtures.moment)
            }
            for number in 0..<Int.random(in: 1...3, using: &generator) {
                var subscription = Fixtures.subscription("s\(number)", of: owner)
                // Two subscriptions of one user with the same content would be refused.
                subscription.firesOn = [.all, [.create], [.create, .update]][number]
                subscription.firesOnce = generator.chance(10)
                if generator.chance(60) {
                    subscription.notificationInfo.alertBody = "hello"
                    subscription.notificationInfo.shouldBadge = generator.chance(50)
                }
                _ = try await store.edit(
                    [.create(subscription)],
                    of: SubscriptionOwner(
                        container: Fixtures.container, database: .public,
                        user: Fixtures.identifier(owner)), atomicity: .independent,
                    at: Fixtures.moment)
            }
        }
        var change = Fixtures.change()
        change.origin = ChangeOrigin(
            deviceID: Fixtures.identifier("d3-0"), userID: Fixtures.identifier("user3"))
        _ = try await store.append(
            [ChangeToAppend(change, key: nil)], container: Fixtures.container,
            source: Fixtures.identifier("test"), at: Fixtures.moment)
        return store
    }

    private static func follow(
        _ store: RelayStore, threshold: Int, badges: BadgeCounts = BadgeCounts()
    ) async throws -> (deliveries: [OwedDelivery], ranges: [NewRange]) {
        let taker = Taker(head: try await store.head())
        var follower = Follower(
            log: store, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: 7, badges: badges, rangeThreshold: threshold,
            clock: ContinuousClock(), settings: { _ in settings }, logger: logger,
            take: { try await taker.take($0) })
        try await follower.recover(at: .start, from: store)
        do {
            try await follower.follow(from: .start)
        } catch is Finished {}
        return (await taker.deliveries, await taker.ranges)
    }

    private static func workRanges(
        _ store: RelayStore, badges: BadgeCounts
    ) async throws -> (deliveries: [OwedDelivery], finished: [UInt64], counts: [UInt64: Int]) {
        let taker = Taker(head: .start)
        var worker = RangeWorker(
            log: store, ranges: store, identity: DeliveryIdentity(store: store.storeIdentity),
            badges: badges, settings: { _ in settings }, logger: logger,
            clock: ContinuousClock(), take: { await taker.take($0) })
        try await worker.workAll()
        return (await taker.deliveries, await taker.finishedRanges, await taker.counts)
    }

    @Test(arguments: Seeds.all)
    func `ranges owe the same as the log's turn, from every offset`(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let store = try await Self.store(&generator)
        let whole = try await Self.follow(store, threshold: 1_000_000)
        #expect(whole.ranges.isEmpty && !whole.deliveries.isEmpty)
        let badges = BadgeCounts()
        let parted = try await Self.follow(store, threshold: 5, badges: badges)
        #expect(parted.deliveries.isEmpty && !parted.ranges.isEmpty)

        let head = try await store.head()
        var step = SettledStep(from: .start, to: ProgressMark(position: head, offset: 0))
        // The ranges are smaller than the follower's, so that there are several.
        step.newRanges = parted.ranges.flatMap { range in
            stride(from: 0, to: range.serials.count, by: 7).map { start in
                NewRange(
                    container: range.container, position: range.position,
                    serials: Array(range.serials[start..<min(start + 7, range.serials.count)]))
            }
        }
        try await store.settle(step)
        let worked = try await Self.workRanges(store, badges: badges)
        #expect(worked.deliveries.map(Self.essence) == whole.deliveries.map(Self.essence))
        #expect(worked.finished.count == step.newRanges.count)

        // A crash within the first range: the rest of the range gives the same deliveries.
        let first = try #require(try await store.nextRange(of: Fixtures.container, after: 0))
        let settled = min(2, worked.counts[first.id] ?? 0)
        var move = SettledStep(from: step.to, to: step.to)
        move.rangeSteps = [
            RangeStep(id: first.id, from: 0, to: UInt32(settled), isFinished: false)
        ]
        try await store.settle(move)
        let again = try await Self.workRanges(store, badges: BadgeCounts())
        #expect(
            again.deliveries.map(\.delivery.id)
                == whole.deliveries.dropFirst(settled).map(\.delivery.id))
        await store.close()
    }

    /// One user may have a thousand devices and ten thousand subscriptions.
    @Test(arguments: [(true, [20, 10]), (false, [1])])
    func `fan-outs and ranges are measured by their pushes`(
        isVisible: Bool, counts: [Int]
    ) async throws {
        let store = try TemporaryStore().open()
        try await store.save(Self.settings, at: Fixtures.moment)
        for number in 0..<200 {
            _ = try await store.register(
                Fixtures.device("d\(number)", token: number + 1), at: Fixtures.moment)
        }
        for number in 0..<30 {
            var subscription = Fixtures.subscription("s\(number)", where: "n < \(1000 + number)")
            if isVisible { subscription.notificationInfo.alertBody = "hello" }
            _ = try await store.edit(
                [.create(subscription)],
                of: SubscriptionOwner(
                    container: Fixtures.container, database: .public, user: subscription.owner),
                atomicity: .independent, at: Fixtures.moment)
        }
        _ = try await store.append(
            [ChangeToAppend(Fixtures.change(fields: ["n": .integer(1)]), key: nil)],
            container: Fixtures.container, source: Fixtures.identifier("test"),
            at: Fixtures.moment)
        let parted = try await Self.follow(store, threshold: 1000)
        #expect(parted.deliveries.isEmpty)
        #expect(parted.ranges.map(\.serials.count) == counts)
        await store.close()
    }

    /// Returns what a device gets, without the place in the fan-out.
    private static func essence(_ owed: OwedDelivery) -> [String] {
        [
            owed.delivery.id.description, owed.delivery.token.rawValue,
            String(decoding: owed.delivery.notification.payload, as: UTF8.self),
        ]
    }
}
