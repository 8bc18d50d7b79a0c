import Delivery
import Fanout
import Logging
import RelayModel
import ServiceLifecycle
import Storage
import Synchronization

/// The walk of one shard: its log is followed, what that owes is sent, and the progress moves.
///
/// It reaches the store through the shard's handle and by no other way, so that it does not matter
/// whether the shard is the only one, and for how long this process owns it. What all walks of a
/// process share is handed in.
final class ShardWalk: Sendable {
    /// What the walk is doing, for `/readyz`.
    enum Phase: String, Sendable {
        case starting, recovering, following, stopping
    }

    private let shard: any ShardHandle
    private let relay: WalkSurroundings
    let worker: DeliveryWorker
    /// Holds containers that append faster than they are followed.
    let turns: IntakeTurns
    private let snapshots: SnapshotStore?
    /// What stood by for the shard before this process owned it.
    private let standby: StandbyFollower?
    private let lastImage = Mutex<StateImage?>(nil)
    private let judging = JudgingThread()
    /// The badges, which the follower and the ranges raise.
    private let badges = BadgeCounts()
    /// Says that the badges are loaded.
    private let recovered = AsyncStream<Void>.makeStream()
    private let phase = Mutex(Phase.starting)
    /// What is being loaded.
    private let loading = Mutex<LoadingStage?>(nil)
    /// What the follower is at.
    private let pulse: FollowerPulse

    /// Joins the parts; nothing is followed yet.
    ///
    /// `worker` records to the same shard; `turns` hears of what it sends.
    init(
        of shard: any ShardHandle, worker: DeliveryWorker, turns: IntakeTurns,
        snapshots: SnapshotStore?, standby: StandbyFollower?, in relay: WalkSurroundings
    ) {
        self.shard = shard
        self.worker = worker
        self.turns = turns
        self.snapshots = snapshots
        self.standby = standby
        self.relay = relay
        let began = relay.world.clock.measureStart()
        pulse = FollowerPulse { began.elapsed() }
    }

    /// What sends and settles: the first to begin, and the last to end.
    var sending: LoopService { LoopService { try await self.worker.run() } }

    /// What finds out what is owed; a loop that ends by itself ends the relay.
    var following: [LoopService] {
        [
            LoopService { try await self.follow() },
            LoopService { [pulse, relay] in try await pulse.watch(relay.world, relay.logger) },
            LoopService { try await self.workRanges() },
            LoopService { try await self.keepSnapshots() },
        ]
    }

    /// The changes that were judged since the start, and the subscriptions that they fired.
    var judged: (changes: UInt64, matches: UInt64) { pulse.judged }

    /// How far deliveries are settled.
    var settled: LogPosition { worker.recordedMark.position }

    /// Whether the log is followed, so that nothing is recovered any more.
    var isFollowing: Bool { phase.withLock { $0 } == .following }

    /// Whether the log is followed, and if not, why.
    func readiness(shortage: String?) -> Readiness {
        let phase = phase.withLock { $0 }
        var reasons = ["follower": phase.rawValue]
        if phase == .recovering, let stage = loading.withLock({ $0 }) {
            reasons["loading"] = "\(stage)"
        }
        return Readiness(
            pulse, unready: phase == .following ? nil : reasons, shortage: shortage)
    }

    /// Says that the end has begun.
    func stop() {
        phase.withLock { $0 = .stopping }
    }

    /// How long a gateway may answer nothing while another relay waits for the store: longer than
    /// one takes that works, and as long as nobody's changes are taken.
    private static let silence = Duration.seconds(2)

    /// Lets what is in flight finish, once the loops have ended.
    ///
    /// Where the end `isAwaited` by another relay, a gateway that is silent does not hold it up:
    /// what is open is sent again by that one.
    func finishSending(isAwaited: Bool) async {
        let logger = relay.logger
        logger.info(
            "finishing what is in flight", metadata: ["count": .stringConvertible(worker.inFlight)])
        do {
            try await worker.shutDown(
                within: relay.configuration.shutdownGrace, silence: isAwaited ? Self.silence : nil)
        } catch {
            // What could not be recorded is owed still, and is worked after the next start.
            logger.error("could not record the last step", metadata: ["reason": "\(error)"])
        }
    }

    /// Keeps the follower's state for the next start, once everything is settled that will be.
    ///
    /// Unless it `writesLast`, that is the last snapshot that was written before.
    func keepState(writesLast: Bool) async {
        let image = lastImage.withLock { $0.take() }
        do {
            try await snapshots?.finish(writesLast ? image : nil, progress: settled)
        } catch {
            relay.logger.warning(
                "could not keep the last snapshot", metadata: ["reason": "\(error)"])
        }
    }

    // MARK: The loops

    private func follow() async throws {
        phase.withLock { $0 = .recovering }
        let began = relay.world.clock.measureStart()
        var follower = makeFollower()
        let mark = worker.recordedMark
        try await follower.recover(at: mark, from: shard, standby: standby) { stage in
            loading.withLock { $0 = stage }
        }
        relay.logger.info(
            "recovered",
            metadata: [
                "position": "\(mark.position)",
                "seconds": .stringConvertible(began.elapsed() / .seconds(1)),
            ])
        phase.withLock { $0 = .following }
        recovered.continuation.yield()
        do {
            try await follower.follow(from: mark)
        } catch let error as CancellationError {
            let image = follower.lastImage()
            lastImage.withLock { $0 = image }
            throw error
        }
    }

    private func makeFollower() -> Follower {
        let world = relay.world
        var generator = world.generator
        return Follower(
            log: shard, progress: shard, identity: DeliveryIdentity(store: shard.shardIdentity),
            indexSeed: generator.next(), badges: badges,
            rangeThreshold: relay.configuration.rangeThreshold, now: world.now, clock: world.clock,
            settings: { [relay] key in relay.directory[key] }, logger: relay.logger,
            directory: relay.indexes, snapshots: snapshots, pulse: pulse,
            watch: relay.watch, beside: besideLog, metrics: relay.metrics,
            take: { [worker, turns, pulse, relay] batch in
                relay.events.handOver(batch.deliveries)
                try await worker.accept(batch)
                guard batch.finished != nil || batch.madeUp != nil else { return }
                turns.followed(
                    upTo: batch.finished, behind: batch.behind, work: pulse.takeWork())
            })
    }

    /// Where changes with dear conditions are judged; `nil` if the window of deliveries is too
    /// small for others to go on meanwhile.
    private var besideLog: BesideLog? {
        let window = relay.configuration.delivery.inFlight
        return window < 64 ? nil : BesideLog(judging, window: window)
    }

    /// Works the ranges of huge fan-outs beside the follower.
    private func workRanges() async throws {
        for await _ in recovered.stream { break }
        let world = relay.world
        var ranges = RangeWorker(
            log: shard, ranges: shard, identity: DeliveryIdentity(store: shard.shardIdentity),
            badges: badges, settings: { [relay] key in relay.directory[key] },
            logger: relay.logger, now: world.now, clock: world.clock,
            take: { [worker, relay] batch in
                relay.events.handOver(batch.deliveries)
                try await worker.accept(batch)
            })
        try await ranges.run()
    }

    private func keepSnapshots() async throws {
        guard let snapshots else {
            // A loop that ends would end the relay.
            return try await gracefulShutdown()
        }
        try await snapshots.run { [worker] in worker.recordedMark.position }
    }
}

/// What the walks of one process share.
struct WalkSurroundings: Sendable {
    let configuration: RelayConfiguration
    let world: World
    let logger: Logger
    /// The settings of containers.
    let directory: ContainerDirectory
    /// The containers' indexes, which followers enter.
    let indexes: IndexDirectory
    /// What happens to changes, for listeners.
    let events: WalkEvents
    /// Is told what became of each change.
    let watch: ChangeWatch?
    /// What is counted.
    let metrics: PrometheusMetrics
}
