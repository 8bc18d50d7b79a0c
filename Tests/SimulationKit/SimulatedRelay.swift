import Delivery
import Fanout
import Gateway
import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite

/// The volatile half of a relay, which a crash takes away.
///
/// The follower, the range worker, the tracker and the judge are the real ones. The shells around
/// them, which wait and call out, are replaced: the simulation chooses what happens next.
struct SimulatedRelay {
    private struct Idle: Error {}

    /// Batches that were handed over and wait for room.
    private actor Queue {
        var batches: [OwedBatch] = []
        var ranges: [RangeBatch] = []
        let head: LogPosition
        /// How far the log was read: past the head if reading itself has appended an entry.
        private(set) var finished = LogPosition.start
        /// The number of changes that are being judged beside the log.
        private var putOff = 0

        init(head: LogPosition) {
            self.head = head
        }

        func take(_ batch: OwedBatch) throws {
            batches.append(batch)
            finished = max(finished, batch.finished ?? .start)
            if batch.putsOff { putOff += 1 }
            if batch.madeUp != nil { putOff -= 1 }
            if finished >= head, putOff == 0 { throw Idle() }
        }

        func take(_ batch: RangeBatch) {
            ranges.append(batch)
        }
    }

    static let rangeThreshold = 3
    private static let logger = Logger.silent

    let store: RelayStore
    private let window: Int
    var tracker: DeliveryTracker
    /// The deliveries that were held back, and the moment when each was last held.
    private(set) var held: [DeliveryID: (delivery: Delivery, at: Timestamp)] = [:]
    /// The attempts that the gateway has not answered.
    var open: [(ticket: DeliveryTracker.Ticket, delivery: OwedDelivery, attempts: UInt16)] = []
    private var batches: [OwedBatch] = []
    private var ranges: [RangeBatch] = []
    private var followed: LogPosition
    private var offset: UInt32
    private let badges = BadgeCounts()
    private var holds = HoldRules()
    private var throttles = ThrottleMemory()
    /// The deliveries that wait for the connections of their devices, by ordinal, and whether a
    /// connection has proven that the device was told.
    ///
    /// A crash forgets them.
    private var sights: [DeliveryOrdinal: (id: DeliveryID, isSeen: Bool)] = [:]
    /// The deliveries that were not sent because they were seen.
    private var seen: Set<DeliveryID> = []
    private let judge = OutcomeJudge()
    private var handedRanges: Set<UInt64> = []
    private let snapshots: SnapshotStore
    /// An image of the state that will become a snapshot; a crash loses it.
    private var image: StateImage?

    /// Starts from the durable state.
    init(_ store: RelayStore, window: Int, snapshots: SnapshotStore) async throws {
        self.store = store
        self.snapshots = snapshots
        self.window = window
        let mark = try await store.mark()
        tracker = DeliveryTracker(mark: mark, window: window, rangeWindow: window)
        followed = mark.position
        offset = mark.offset
    }

    /// Reads the log to its end, from where it was last read to.
    ///
    /// The state is recovered anew each time, because recovery at any position must lead to the
    /// same state.
    mutating func follow() async throws {
        let head = try await store.head()
        guard followed < head else { return }
        let queue = Queue(head: head)
        var follower = Self.follower(
            store, log: store, badges: badges, threshold: Self.rangeThreshold, snapshots: snapshots,
            seed: followed.rawValue,
            beside: BesideLog(
                SeededJudge(seed: followed.rawValue), window: window, stepsInTurn: 20),
            take: { try await queue.take($0) })
        let mark = ProgressMark(position: followed, offset: offset)
        try await follower.recover(at: mark, from: store, portion: 7)
        do {
            try await follower.follow(from: mark)
        } catch is Idle {}
        batches += await queue.batches
        followed = await queue.finished
        offset = 0
    }

    private static func follower(
        _ store: RelayStore, log: any ShardLog, badges: BadgeCounts, threshold: Int,
        snapshots: SnapshotStore?, seed: UInt64 = 7, mostSteps: Int = DearModel.mostSteps,
        beside: BesideLog? = nil, take: @escaping Follower.Taker
    ) -> Follower {
        Follower(
            log: log, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: seed, badges: badges, rangeThreshold: threshold,
            // Entries that were set aside must not get so old that they are pruned.
            now: { Fixtures.moment }, clock: ContinuousClock(),
            settings: { SimulatedWorld.settings($0) }, logger: logger,
            snapshots: snapshots, mostSteps: mostSteps, beside: beside, take: take)
    }

    /// Returns what the log owes after `start` and up to `end`, and which subscriptions its
    /// changes fired.
    ///
    /// The result is that of a follower that never crashed, and that skips the changes set aside.
    static func owed(
        by store: RelayStore, after start: LogPosition, upTo end: LogPosition,
        without aside: Set<LogPosition>
    ) async throws -> (deliveries: [OwedDelivery], firings: [FiringNote]) {
        guard start < end else { return ([], []) }
        let queue = Queue(head: end)
        var follower = follower(
            store, log: LogUpTo(end: end, store: store, aside: aside), badges: BadgeCounts(),
            threshold: .max, snapshots: nil, mostSteps: .max, take: { try await queue.take($0) })
        let mark = ProgressMark(position: start, offset: 0)
        try await follower.recover(at: mark, from: store)
        do {
            try await follower.follow(from: mark)
        } catch is Idle {}
        let batches = await queue.batches
        return (batches.flatMap(\.deliveries), batches.flatMap(\.firings))
    }

    /// Takes an image of the state as far as the log was read.
    ///
    /// The image may be ahead of the progress, and becomes a snapshot later.
    mutating func takeImage() async throws {
        var follower = Self.follower(
            store, log: store, badges: BadgeCounts(), threshold: .max, snapshots: snapshots,
            take: { _ in })
        try await follower.recover(at: ProgressMark(position: followed, offset: 0), from: store)
        image = follower.lastImage()
    }

    /// Keeps the image as a snapshot once the recorded progress has reached its position.
    mutating func keepSnapshot() async throws {
        let mark = try await store.mark()
        guard let waiting = image, waiting.position <= mark.position else { return }
        image = nil
        try await snapshots.finish(waiting, progress: mark.position)
    }

    /// Works the ranges that are in the store and were not read yet.
    mutating func workRanges() async throws {
        let queue = Queue(head: .start)
        var worker = RangeWorker(
            log: store, ranges: store, identity: DeliveryIdentity(store: store.storeIdentity),
            badges: badges, settings: { SimulatedWorld.settings($0) }, logger: Self.logger,
            clock: ContinuousClock(),
            take: { await queue.take($0) })
        try await worker.workAll()
        let new = await queue.ranges.filter { !handedRanges.contains($0.id) }
        ranges += new
        handedRanges.formUnion(new.map(\.id))
    }

    // MARK: Admitting

    /// Admits as many deliveries as there is room for; returns those that are sent now.
    mutating func admit(at now: Timestamp) async throws -> [OwedDelivery] {
        var sent: [OwedDelivery] = []
        while !batches.isEmpty {
            guard tracker.add(firings: batches[0].firings) else { break }
            batches[0].firings = []
            while tracker.room > 0, let delivery = batches[0].deliveries.first {
                batches[0].deliveries.removeFirst()
                let ticket = tracker.admit(delivery, at: now)
                if try await send(delivery, ticket, at: now) { sent.append(delivery) }
            }
            guard batches[0].deliveries.isEmpty else { break }
            let batch = batches.removeFirst()
            if let change = batch.madeUp { tracker.makeUp(change) }
            guard let position = batch.finished else { continue }
            if batch.putsOff {
                tracker.putOff(position)
            } else {
                tracker.finish(position, ranges: batch.ranges)
            }
        }
        while !ranges.isEmpty {
            let (id, offset) = (ranges[0].id, ranges[0].offset)
            while tracker.rangeRoom > 0, let delivery = ranges[0].deliveries.first {
                ranges[0].deliveries.removeFirst()
                let ticket = tracker.admit(delivery, range: id, offset: offset)
                if try await send(delivery, ticket, at: now) { sent.append(delivery) }
            }
            guard ranges[0].deliveries.isEmpty else { break }
            let range = ranges.removeFirst()
            if range.isLast { tracker.finishRange(id, offset: offset, firing: range.firing) }
        }
        return sent
    }

    /// Takes up due retries; returns the deliveries that are sent again.
    mutating func admitRetries(at now: Timestamp) async throws -> [OwedDelivery] {
        let due = try await store.dueRetries(
            at: now, limit: 5, excluding: tracker.retriesInFlight, unless: { _ in false })
        var sent: [OwedDelivery] = []
        let kindness = try await store.kindness(among: due.map(\.delivery))
        for retry in due {
            var (ticket, delivery) = (tracker.admit(retry), retry.delivery)
            delivery.kindness = kindness[delivery.delivery.id]
            if try await send(
                delivery, ticket, retried: retry.attempts, heldFor: retry.reason.hold, at: now)
            {
                sent.append(delivery)
            }
        }
        return sent
    }

    /// Closes the digests that are due; returns how many it closed.
    func closeDigests(at now: Timestamp) async throws -> Int {
        let due = try await store.dueDigests(at: now, limit: 5)
        return try await store.close(due.map { ClosingDigest($0, as: $0.delivery) }, at: now)
    }

    /// Sends a delivery, unless it is held back, withdrawn or seen; returns whether it was sent.
    private mutating func send(
        _ delivery: OwedDelivery, _ ticket: DeliveryTracker.Ticket, retried attempts: UInt16? = nil,
        heldFor reason: HoldReason? = nil, at now: Timestamp
    ) async throws -> Bool {
        if reason == .connected,
            sights.removeValue(forKey: delivery.delivery.ordinal)?.isSeen == true,
            delivery.kindness?.isUnlessConnected == true
        {
            tracker.settle(ticket, Resolution(seen: delivery, attempts: attempts ?? 0, at: now))
            seen.insert(delivery.delivery.id)
            return false
        }
        // Retries are always checked for withdrawal, other deliveries only if a registration has
        // ended.
        let isSuspect =
            attempts != nil || !store.endedDevices(among: [delivery.deviceSerial]).isEmpty
        let withdrawals = isSuspect ? try await store.withdrawals(among: [delivery]) : [:]
        let unknown = throttles.unknownLines(among: [delivery])
        throttles.learn(try await store.throttlePasts(of: Array(unknown), at: now), at: now)
        guard let withdrawal = withdrawals[delivery.delivery.id] else {
            if let hold = hold(on: delivery, attempts, at: now) {
                let held = judge.held(delivery, attempts: attempts ?? 0, hold, at: now)
                tracker.settle(ticket, held)
                if held.ending == .held {
                    self.held[delivery.delivery.id] = (delivery.delivery, now)
                }
                return false
            }
            open.append((ticket, delivery, attempts ?? 0))
            return true
        }
        tracker.settle(
            ticket,
            Resolution(
                deadLetter: DeadLetter(
                    delivery: delivery, attempts: attempts ?? 0, status: 0,
                    reason: withdrawal.rawValue, at: now), .withdrawn))
        return false
    }

    /// Returns the reason to hold a delivery back, asked in the same order as in the relay.
    private mutating func hold(
        on delivery: OwedDelivery, _ attempts: UInt16?, at now: Timestamp
    ) -> HoldRules.Hold? {
        let (id, ordinal) = (delivery.delivery.id, delivery.delivery.ordinal)
        // Half of the devices count as connected.
        if attempts == nil, delivery.kindness?.isUnlessConnected == true,
            (ordinal.position.rawValue + UInt64(ordinal.offset)).isMultiple(of: 2)
        {
            sights[ordinal] = (id, false)
            return .connected(since: now)
        }
        if let hold = holds.hold(on: delivery, attempts: attempts ?? 0, at: now) { return hold }
        guard let throttle = delivery.kindness?.subscription.throttle else { return nil }
        return throttles.place(
            delivery.delivery, throttle, hasGone: attempts ?? 0 > 0, at: now
        ).map { .throttled(until: $0) }
    }

    /// Settles an attempt, with the place that its throttle gave it.
    mutating func settle(
        _ ticket: DeliveryTracker.Ticket, _ resolution: Resolution, of delivery: OwedDelivery
    ) {
        var resolution = resolution
        resolution.place = throttles.unrecordedPlace(of: delivery.delivery)
        tracker.settle(ticket, resolution)
    }

    /// Takes note that a step is durable.
    mutating func stepRecorded(_ step: SettledStep) {
        tracker.stepRecorded()
        throttles.recorded(step.places)
    }

    /// Lets each connection prove that its device was told what waits for it, or end without
    /// proof.
    mutating func hearFromConnections(
        at now: Timestamp, using generator: inout SeededGenerator
    ) async throws {
        // Sorted by ordinal, because the IDs differ in each life.
        let ordinals = sights.keys.sorted()
        for ordinal in ordinals { sights[ordinal]?.isSeen = generator.chance(70) }
        try await store.release(
            ordinals.compactMap { sights[$0]?.id }, heldFor: .connected, at: now)
    }

    /// Returns the deliveries that were not sent because they were seen, since the last call.
    mutating func takeSeen() -> Set<DeliveryID> {
        defer { seen = [] }
        return seen
    }

    /// Takes note that the clock was set back by `step`.
    mutating func clockWasSetBack(by step: Duration) {
        throttles.clockWasSetBack(by: step)
    }

    /// Whether nothing waits in memory.
    var isIdle: Bool { batches.isEmpty && ranges.isEmpty && open.isEmpty }
}

/// A log that ends at a position.
private struct LogUpTo: ShardLog {
    let end: LogPosition
    let store: RelayStore
    let aside: Set<LogPosition>

    func positionsSetAside(after position: LogPosition) async throws -> Set<LogPosition> {
        aside
    }

    func entries(after position: LogPosition, limit: Int) async throws -> [LogEntry] {
        try await store.entries(after: position, limit: limit).filter { $0.position <= end }
    }

    func followedEntries(
        after position: LogPosition, limit: Int
    ) async throws -> [FollowedEntry] {
        try await store.followedEntries(after: position, limit: limit)
            .filter { $0.position <= end }
    }

    func quarantine(_ entry: UnreadableEntry, at now: Timestamp) async throws {
        try await store.quarantine(entry, at: now)
    }

    func head() async throws -> LogPosition { end }

    func waitForGrowth(beyond position: LogPosition) async throws {
        try await store.waitForGrowth(beyond: position)
    }
}
