import Delivery
import Fanout
import Logging
import RelayModel
import ServiceLifecycle
import Storage
import Synchronization

/// The walk of one shard: it follows the log, sends what is owed, and moves the progress.
///
/// It uses the store only through the shard's handle. So it does not matter whether the shard is
/// the only one, or for how long this process owns it. What all walks of a process share is passed
/// in.
final class ShardWalk: Sendable {
    /// The phase of the walk, for `/readyz`.
    enum Phase: String, Sendable {
        case starting, recovering, following, stopping
    }

    private let shard: any ShardHandle
    private let relay: WalkSurroundings
    let worker: DeliveryWorker
    /// Slows containers that append faster than the log is followed.
    let turns: IntakeTurns
    private let snapshots: SnapshotStore?
    /// The follower that stood by for the shard before this process owned it.
    private let standby: StandbyFollower?
    private let lastImage = Mutex<StateImage?>(nil)
    private let judging = JudgingThread()
    /// The badge counts, which the follower and the ranges raise.
    private let badges = BadgeCounts()
    /// Signals that the badge counts are loaded.
    private let recovered = AsyncStream<Void>.makeStream()
    private let phase = Mutex(Phase.starting)
    /// What is being loaded.
    private let loading = Mutex<LoadingStage?>(nil)
    /// The pulse of the follower.
    private let pulse: FollowerPulse

    /// Connects the parts; nothing is followed yet.
    ///
    /// `worker` must record to the same shard, and report to `turns` what it sends.
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

    /// The service that sends and settles; the first to start, and the last to end.
    var sending: LoopService { LoopService { try await self.worker.run() } }

    /// The services that find out what is owed; a loop that ends by itself ends the relay.
    var following: [LoopService] {
        [
            LoopService { try await self.follow() },
            LoopService { [pulse, relay] in try await pulse.watch(relay.world, relay.logger) },
            LoopService { try await self.workRanges() },
            LoopService { try await self.keepSnapshots() },
        ]
    }

    /// The number of changes that were judged since the start, and of the subscriptions that they
    /// fired.
    var judged: (changes: UInt64, matches: UInt64) { pulse.judged }

    /// The position up to which deliveries are settled.
    var settled: LogPosition { worker.recordedMark.position }

    /// Whether the log is followed, that is, recovery is finished.
    var isFollowing: Bool { phase.withLock { $0 } == .following }

    /// Returns whether the log is followed, and if not, why.
    func readiness(shortage: String?) -> Readiness {
        let phase = phase.withLock { $0 }
        var reasons = ["follower": phase.rawValue]
        if phase == .recovering, let stage = loading.withLock({ $0 }) {
            reasons["loading"] = "\(stage)"
        }
        return Readiness(
            pulse, unready: phase == .following ? nil : reasons, shortage: shortage)
    }

    /// Marks the beginning of the shutdown.
    func stop() {
        phase.withLock { $0 = .stopping }
    }

    /// How long the gateway may stay silent while another relay waits for the store.
    ///
    /// A working gateway answers within this time. The time is bounded because no changes are
    /// accepted meanwhile.
    private static let silence = Duration.seconds(2)

    /// Lets what is in flight finish after the loops have ended.
    ///
    /// If another relay waits for the end (`isAwaited`), a silent gateway does not delay it: the
    /// next owner sends again what is still open.
    func finishSending(isAwaited: Bool) async {
        let logger = relay.logger
        logger.info(
            "finishing deliveries that are in flight",
            metadata: ["count": .stringConvertible(worker.inFlight)])
        do {
            try await worker.shutDown(
                within: relay.configuration.shutdownGrace, silence: isAwaited ? Self.silence : nil)
        } catch {
            // What could not be recorded is still owed, and is worked again after the next start.
            logger.error("could not record the last step", metadata: ["reason": "\(error)"])
        }
    }

    /// Keeps the follower's state for the next start, after everything is settled that will be.
    ///
    /// With `writesLast`, it writes a new snapshot. Otherwise the one that was written before is
    /// kept.
    func keepState(writesLast: Bool) async {
        let image = lastImage.withLock { $0.take() }
        do {
            try await snapshots?.finish(writesLast ? image : nil, progress: settled)
        } catch {
            relay.logger.warning(
                "could not save the last snapshot", metadata: ["reason": "\(error)"])
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

    /// Judges changes with expensive conditions beside the log.
    ///
    /// It is `nil` if the window of deliveries is too small for other changes to continue
    /// meanwhile.
    private var besideLog: BesideLog? {
        let window = relay.configuration.delivery.inFlight
        return window < 64 ? nil : BesideLog(judging, window: window)
    }

    /// Works the ranges of very large fan-outs beside the follower.
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
    /// The containers' indexes, which the followers maintain.
    let indexes: IndexDirectory
    /// The events of the walk, for listeners.
    let events: WalkEvents
    /// Is called with the outcome of each change.
    let watch: ChangeWatch?
    /// Receives the metrics.
    let metrics: PrometheusMetrics
}
