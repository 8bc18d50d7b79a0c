import Delivery
import Fanout
import Gateway
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization

/// A promise that a simulation broke.
package struct BrokenPromise: Error, CustomStringConvertible {
    package let seed: UInt64
    let step: Int
    let sentence: String

    package var description: String { "seed \(seed), step \(step): \(sentence)" }
}

/// The sum of what happened in lives that kept the promises.
package struct LifeTally: Sendable, Equatable {
    package var lives = 0
    package var steps = 0
    package var crashes = 0
    /// The number of owed deliveries, and how often they were sent.
    package var owed = 0
    package var sent = 0
    /// The number of changes that were set aside because a condition took too many steps.
    package var setAside = 0
    /// How often another relay took the store.
    package var takeovers = 0
    /// How often the results of connected clients were compared with the store.
    package var looks = 0

    /// Creates an empty tally.
    package init() {}

    /// Adds the tally of other lives.
    package static func += (tally: inout LifeTally, other: LifeTally) {
        tally.lives += other.lives
        tally.steps += other.steps
        tally.crashes += other.crashes
        tally.owed += other.owed
        tally.sent += other.sent
        tally.setAside += other.setAside
        tally.takeovers += other.takeovers
        tally.looks += other.looks
    }
}

/// One life of a relay with its crashes.
///
/// The seed decides what happens next, what the gateway answers, when the process dies, and how
/// the clock goes.
///
/// After every step the promises of docs/guarantees.md are checked as far as they can be seen
/// then. At the end all of them are checked.
struct Simulation {
    private let seed: UInt64
    private let home: LifeHome
    private var store: RelayStore
    private var world: SimulatedWorld
    private var relay: SimulatedRelay
    /// The connected clients, if the life has any.
    private var audience: SimulatedAudience?
    private var generator: SeededGenerator
    private var now = Fixtures.moment
    private let window: Int
    private let judge = OutcomeJudge(
        retries: RetryPolicy(base: .seconds(2), cap: .seconds(60), maximumAttempts: 6))
    private var step = 0

    /// How often each delivery was sent, and how often it was accepted.
    private var sent: [DeliveryID: Int] = [:]
    private var accepted: [DeliveryID: Int] = [:]
    /// The deliveries that were accepted in this life or are known to be durable; they must not be
    /// sent again.
    private var done: Set<DeliveryID> = []
    /// The part of `done` that is not durable, which a crash takes back.
    private var unrecorded: Set<DeliveryID> = []
    private var crashes = 0
    private var takeovers = 0
    /// The deliveries that were held back in earlier lives, and the moment when each was last
    /// held.
    private var held: [DeliveryID: (delivery: Delivery, at: Timestamp)] = [:]
    /// The deliveries that were seen and therefore not sent, in this life or durably.
    private var seen: Set<DeliveryID> = []
    /// What was sent for subscriptions with a throttle, and when it was first sent.
    private var throttled = ThrottleModel()
    private var once: [UInt64: LogPosition] = [:]
    /// What the log owes up to a position, as a follower that never crashed would hand it over.
    ///
    /// It is computed before the entries that it follows from are pruned.
    private var owed: [OwedDelivery] = []
    private var owedUpTo = LogPosition.start
    private var health = HealthModel()
    private var dear = DearModel()
    private let makeIdentity: @Sendable () -> UUIDBytes
    private var snapshots: SnapshotStore

    init(seed: UInt64, home: LifeHome, store: RelayStore, withClients: Bool) async throws {
        self.seed = seed
        self.home = home
        self.store = store
        generator = SeededGenerator(seed: seed ^ 0x5EED)
        window = [1, 2, 5, 16][Int(seed % 4)]
        world = SimulatedWorld(seed: seed, store: store)
        if withClients { audience = SimulatedAudience(seed: seed, store: store) }
        for container in SimulatedWorld.containers {
            try await store.save(SimulatedWorld.settings(container), at: now)
        }
        let identities = Mutex(SeededGenerator(seed: seed ^ 0x1D))
        makeIdentity = { identities.withLock { UUIDBytes(high: $0.next(), low: $0.next()) } }
        snapshots = Self.snapshots(of: store, in: home, makeIdentity)
        relay = try await SimulatedRelay(store, window: window, snapshots: snapshots)
    }

    private static func snapshots(
        of store: RelayStore, in home: LifeHome, _ makeIdentity: @escaping @Sendable () -> UUIDBytes
    ) -> SnapshotStore {
        SnapshotStore(
            SnapshotStore.Settings(stem: home.path + "-snapshot-", interval: .seconds(86_400)),
            storeIdentity: store.storeIdentity, store: store, now: { Fixtures.moment },
            clock: ContinuousClock(), makeIdentity: makeIdentity, logger: .silent)
    }

    /// Closes the store.
    func close() async { await store.close() }

    /// Takes `steps` random steps, and then goes on until nothing is owed.
    ///
    /// - Throws: ``BrokenPromise``, or an error of the store.
    mutating func run(steps: Int) async throws -> LifeTally {
        while step < steps {
            step += 1
            if try await takeStep() { try await checkAccounts() }
            if let sentence = try await audience?.act(at: now) { throw broken(sentence) }
        }
        try await world.resumeAll(at: now)
        for _ in 0..<100_000 {
            step += 1
            guard try await settleRest() else { continue }
            try await checkEverything()
            if let sentence = try await audience?.end() { throw broken(sentence) }
            return tally
        }
        throw broken("it does not come to rest")
    }

    private var tally: LifeTally {
        var tally = LifeTally()
        tally.lives = 1
        tally.steps = step
        tally.crashes = crashes
        tally.takeovers = takeovers
        tally.owed = sent.count
        tally.sent = sent.values.reduce(0, +)
        tally.setAside = dear.setAside.count
        tally.looks = audience?.looks ?? 0
        return tally
    }

    private func broken(_ sentence: String) -> BrokenPromise {
        BrokenPromise(seed: seed, step: step, sentence: sentence)
    }

    /// Takes a step; returns whether it may have changed the durable state.
    private mutating func takeStep() async throws -> Bool {
        now = now.advanced(by: .milliseconds(Int.random(in: 0...2000, using: &generator)))
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<6: try await world.register(at: now)
        case 6..<8: try await world.forget(at: now)
        case 8..<9: try await world.pause(at: now)
        case 9..<16: try await world.save(at: now)
        case 16..<19: try await world.delete(at: now)
        case 19..<32: if let sentence = try await world.post(at: now) { throw broken(sentence) }
        case 32..<42: try await relay.follow()
        case 42..<47: try await relay.workRanges()
        case 47..<58:
            try note(try await relay.admit(at: now))
            return false
        case 58..<61: try note(try await relay.admitRetries(at: now))
        case 61:
            try await relay.hearFromConnections(at: now, using: &generator)
            if try await relay.closeDigests(at: now) == 0 { try await setClockBack() }
        case 62..<81:
            answer(honestly: false)
            return false
        case 81..<94: try await record(survives: true)
        case 94: try await record(survives: false)
        case 95..<98:
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<3: try await relay.takeImage()
            case 3..<6: try await relay.keepSnapshot()
            case 6: _ = try await store.addUpFirings()
            default: try await prune()
            }
        default: try await crash()
        }
        return true
    }

    /// Settles the rest with a gateway that accepts everything; returns whether nothing is left.
    private mutating func settleRest() async throws -> Bool {
        try await passTime()
        _ = try await relay.closeDigests(at: now)
        try await relay.follow()
        try await relay.workRanges()
        try note(try await relay.admit(at: now))
        try note(try await relay.admitRetries(at: now))
        while !relay.open.isEmpty { answer(honestly: true) }
        try await record(survives: true)
        try await checkAccounts()
        let backlog = try await store.backlog()
        let mark = try await store.mark().position
        let head = try await store.head()
        let isDigesting = try await store.nextDigestDue() != nil
        return relay.isIdle && !isDigesting && backlog.ranges == 0 && backlog.retries == 0
            && mark == head
    }

    /// Advances by half a minute, or to the next due moment if nothing else is left.
    private mutating func passTime() async throws {
        now = now.advanced(by: .seconds(30))
        let head = try await store.head()
        guard relay.isIdle, try await store.mark().position == head else { return }
        let due = [
            try await store.nextRetryDue(excluding: [], unless: { _ in false }),
            try await store.nextDigestDue(),
        ]
        now = max(now, due.compactMap(\.self).min() ?? now)
    }

    // MARK: What happens

    /// Sets the clock back by some seconds; every wait begins anew.
    private mutating func setClockBack() async throws {
        let step = Duration.milliseconds(Int.random(in: 0...20_000, using: &generator))
        now = now.advanced(by: .zero - step)
        relay.clockWasSetBack(by: step)
        throttled.clockWasSetBack(by: step)
        while try await store.renewWaits(at: now) > 0 {}
    }

    private mutating func answer(honestly isKind: Bool) {
        guard !relay.open.isEmpty else { return }
        let index = Int.random(in: 0..<relay.open.count, using: &generator)
        let (ticket, delivery, attempts) = relay.open.remove(at: index)
        let outcome = isKind ? .accepted : outcome(&generator)
        // If the answer is lost, the push may still have been accepted.
        if case .accepted = outcome {
            accepted[delivery.delivery.id, default: 0] += 1
            unrecorded.insert(delivery.delivery.id)
            done.insert(delivery.delivery.id)
        }
        let verdict = judge.judge(
            outcome, of: delivery, attempts: attempts, at: now, using: &generator)
        relay.settle(ticket, verdict.resolution, of: delivery)
    }

    private func outcome(_ generator: inout SeededGenerator) -> PushOutcome {
        switch Int.random(in: 0..<20, using: &generator) {
        case 0: .unknown(cause: "connection lost")
        case 1: .notSent(cause: "no connection")
        case 2:
            .refused(
                GatewayRefusal(
                    status: 503, reason: "ServiceUnavailable",
                    reaction: .retry(after: .seconds(1), scope: .delivery)))
        case 3:
            .refused(
                GatewayRefusal(
                    status: 400, reason: "BadTopic", reaction: .deadLetter))
        case 4:
            .refused(
                GatewayRefusal(
                    status: 410, reason: "Unregistered",
                    reaction: .forgetDeviceToken(.dead(since: now))))
        default: .accepted
        }
    }

    private mutating func record(survives: Bool) async throws {
        noteSeen()
        guard let part = relay.tracker.takeStep() else { return }
        if !survives, generator.chance(50) { return try await crash() }
        try await store.settle(part)
        unrecorded.subtract(part.receipts.map(\.deliveryID))
        throttled.recorded(part.receipts.lazy.map(\.deliveryID))
        if !survives { return try await crash() }
        relay.stepRecorded(part)
    }

    /// Takes note of the deliveries that the relay did not send because they were seen.
    private mutating func noteSeen() {
        let new = relay.takeSeen()
        seen.formUnion(new)
        unrecorded.formUnion(new)
        done.formUnion(new)
    }

    private mutating func crash() async throws {
        crashes += 1
        held.merge(relay.held) { $1 }
        noteSeen()
        done.subtract(unrecorded)
        seen.subtract(unrecorded)
        unrecorded = []
        throttled.crash()
        if let takeOver = home.takeOver, generator.chance(40) { try await change(by: takeOver) }
        relay = try await SimulatedRelay(store, window: window, snapshots: snapshots)
        if let sentence = try await audience?.crash() { throw broken(sentence) }
    }

    /// Lets another relay take the store; the former owner must not be able to settle any more.
    private mutating func change(by takeOver: () throws -> RelayStore) async throws {
        takeovers += 1
        let former = store
        store = try takeOver()
        world.store = store
        snapshots = Self.snapshots(of: store, in: home, makeIdentity)
        let mark = try await store.mark()
        do {
            try await former.settle(SettledStep(from: mark, to: mark))
            throw broken("a former owner settled")
        } catch is StorageError {}
        await former.close()
        if try await store.mark() != mark { throw broken("a former owner moved the progress") }
    }

    /// Prunes everything that nothing needs any more.
    private mutating func prune() async throws {
        try await learnOwed(upTo: try await store.mark().position)
        try await audience?.prepareForPruning()
        var retention = Retention()
        retention.logAge = .zero
        _ = try await store.prune(retention, at: now, portion: 3)
    }

    private mutating func learnOwed(upTo position: LogPosition) async throws {
        try await dear.read(store, upTo: position)
        let new = try await SimulatedRelay.owed(
            by: store, after: owedUpTo, upTo: position, without: dear.setAside)
        owed += new.deliveries
        health.add(new.firings)
        owedUpTo = max(owedUpTo, position)
    }

    /// Takes note of sent deliveries, and checks that each may be sent.
    private mutating func note(_ deliveries: [OwedDelivery]) throws {
        for owed in deliveries {
            let id = owed.delivery.id
            sent[id, default: 0] += 1
            let (token, container) = (owed.delivery.token, owed.delivery.container)
            if world.holder(of: token, in: container) != owed.delivery.owner {
                throw broken("\(id) is sent to a device that is not its recipient's any more")
            }
            if let sentence = throttled.note(owed, at: now) { throw broken("\(id) \(sentence)") }
            if done.contains(id) {
                throw broken("\(id) is sent again, and no crash explains it")
            }
        }
        if relay.tracker.inFlight > window * 2 + 64 {
            throw broken("\(relay.tracker.inFlight) deliveries are in flight")
        }
    }

    // MARK: The promises

    private func checkAccounts() async throws {
        for account in try await store.accounts() where account.difference != 0 {
            throw broken("the accounts do not balance: \(account)")
        }
    }

    /// Returns the deliveries that a digest told, which must be all of `deliveries`.
    ///
    /// The push of the digest must have been accepted, have ended as a dead letter, or have been
    /// told in a later digest.
    private func toldTogether(
        _ deliveries: [DeliveryID], _ letters: Set<DeliveryID>
    ) async throws -> Set<DeliveryID> {
        let all = held.merging(relay.held) { $1 }
        let told = Set(deliveries)
        for id in deliveries {
            guard let (delivery, at) = all[id],
                case .closed(_, _, let leader, _)? = try await store.digestFate(
                    of: delivery, heldAt: at), leader != id,
                accepted[leader] != nil || letters.contains(leader) || told.contains(leader)
            else { throw broken("\(id) is neither accepted nor a dead letter, nor told") }
        }
        let folded = try await store.accounts().reduce(0) { $0 + $1.folded }
        if folded != deliveries.count {
            throw broken("\(folded) were told with others, and \(deliveries.count) must have been")
        }
        return told
    }

    private mutating func checkEverything() async throws {
        try await learnOwed(upTo: try await store.head())
        if let problem = try await dear.problem(in: store) { throw broken(problem) }
        if let problem = try await health.problem(in: store) { throw broken(problem) }
        let expected = Set(owed.map(\.delivery.id))
        if let wrong = sent.keys.first(where: { !expected.contains($0) }) {
            throw broken("\(wrong) was sent and is not owed")
        }
        var letters: Set<DeliveryID> = []
        var withdrawn: Set<DeliveryID> = []
        for container in SimulatedWorld.containers {
            let dead = try await store.deadLetters(of: container, reason: nil, limit: 100_000)
            letters.formUnion(dead.map(\.delivery.delivery.id))
            withdrawn.formUnion(
                dead.filter { Withdrawal(rawValue: $0.reason) != nil }
                    .map(\.delivery.delivery.id))
        }
        let folded = try await toldTogether(
            expected.filter {
                accepted[$0] == nil && !letters.contains($0) && !seen.contains($0)
            }, letters)
        if let never = expected.first(where: {
            sent[$0] == nil && !withdrawn.contains($0) && !folded.contains($0)
                && !seen.contains($0)
        }) {
            throw broken("\(never) was never attempted")
        }
        for delivery in owed where world.once.contains(delivery.subscriptionSerial) {
            let serial = delivery.subscriptionSerial
            let position = delivery.delivery.ordinal.position
            if once.updateValue(position, forKey: serial).map({ $0 != position }) == true {
                throw broken("the once subscription \(serial) fired twice")
            }
        }
        let unseen = try await store.accounts().reduce(-seen.count) { $0 + $1.seen }
        if unseen != 0 { throw broken("\(unseen) more are counted as seen than were") }
        let counted = try await store.accounts().reduce(0) { $0 + $1.owed }
        if counted != expected.count {
            throw broken("\(counted) are counted as owed, and \(expected.count) are")
        }
        if let problem = try home.check().problems.first { throw broken(problem) }
        if let row = store.unreadable.takeNews().first { throw broken("set aside: \(row)") }
    }
}
