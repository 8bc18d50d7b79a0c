package import Gateway
package import Logging
package import RelayModel
package import Storage
import Synchronization

/// Sends what the log owes and settles what the gateway answers: the thin shell around
/// ``DeliveryTracker`` and ``OutcomeJudge``.
///
/// Concurrency: one lock around the decisions, held for short synchronous stretches; nothing is
/// called out while it is held. The gateway answers on its own thread; two loops in ``run()``
/// record steps and send retries. Life: ``run()`` once, ``shutDown(within:)`` once, after the
/// follower has stopped.
package final class DeliveryWorker: Sendable {
    /// What can be set.
    package struct Settings: Sendable, Hashable {
        /// Deliveries of the log admitted and not yet passed.
        ///
        /// A crash repeats these at the most, and besides the retries of ``retryWindow``.
        package var window = Limits.maximumDeliveriesInFlight
        /// Deliveries of ranges admitted and not yet passed, which a crash repeats too.
        ///
        /// They share the gateway with the log's: few, so that those need not wait long.
        package var rangeWindow = 512
        /// Retries that are worked at a time.
        package var retryWindow = 2048
        /// The least time between two steps, unless ``stepSize`` is reached.
        package var stepInterval: Duration = .milliseconds(4)
        /// Settled deliveries that are recorded without waiting.
        package var stepSize = 512
        /// How long the front of the window may wait for an answer before it becomes a retry.
        package var slowAfter: Duration = .seconds(2)

        /// Creates the default settings.
        package init() {}
    }

    struct State: ~Copyable {
        var tracker: DeliveryTracker
        var halts = Halts()
        var breaker = TokenVerdictBreaker()
        var generator: any RandomNumberGenerator & Sendable
        var deadTokens = DeadTokenMemory()
        var settledSinceStep = 0
    }

    let state: Mutex<State>
    let settings: Settings
    let progress: any ShardProgress
    let judge: OutcomeJudge
    let clock: any Clock<Duration>
    let now: @Sendable () -> Timestamp
    let logger: Logger
    let meter: DeliveryMeter
    let somethingSettled = WakeSignal()
    let roomAppeared = WakeSignal()
    let retriesChanged = WakeSignal()
    let rangeRoomAppeared = WakeSignal()
    let gateway: any PushGateway

    /// Creates a worker that goes on at `mark`.
    ///
    /// - Parameters:
    ///   - mark: The progress as recorded.
    ///   - progress: Where steps are recorded.
    ///   - settings: Windows and times.
    ///   - judge: What follows from an answer.
    ///   - clock: Measures waits.
    ///   - now: Tells the time of day.
    ///   - generator: Spreads retries.
    ///   - logger: Hears what somebody should act on.
    ///   - makeGateway: Makes the gateway that answers to the given sink.
    package init(
        at mark: ProgressMark, recordingTo progress: any ShardProgress,
        settings: Settings = Settings(), judge: OutcomeJudge = OutcomeJudge(),
        clock: any Clock<Duration>, now: @escaping @Sendable () -> Timestamp,
        generator: any RandomNumberGenerator & Sendable, logger: Logger,
        gateway makeGateway: (@escaping PushCompletionSink) throws -> any PushGateway
    ) rethrows {
        state = Mutex(
            State(
                tracker: DeliveryTracker(
                    mark: mark, window: settings.window, rangeWindow: settings.rangeWindow),
                generator: generator))
        self.progress = progress
        self.settings = settings
        self.judge = judge
        self.clock = clock
        self.now = now
        self.logger = logger
        meter = DeliveryMeter()
        let answers = AnswerBox()
        gateway = try makeGateway { completions in answers.deliver(completions) }
        answers.connect { [weak self] completions in self?.take(completions) }
    }

    // MARK: Accepting

    /// Takes what the follower hands over; suspends while the window is full.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, with a part of the batch taken; that
    ///   part is settled, and the rest is owed again after the next start.
    package func accept(_ batch: OwedBatch) async throws {
        var rest = batch.deliveries[...]
        while !rest.isEmpty {
            try Task.checkCancellation()
            let requests = admit(&rest)
            gateway.send(requests)
            CrashPoint.sent.reach()
            if !rest.isEmpty { await roomAppeared.wait() }
        }
        while !state.withLock({ $0.tracker.add(batch.inbox) }) {
            try Task.checkCancellation()
            await roomAppeared.wait()
        }
        if !batch.inbox.isEmpty { somethingSettled.raise() }
        if let position = batch.finished {
            state.withLock { $0.tracker.finish(position, ranges: batch.ranges) }
            somethingSettled.raise()
        }
    }

    private func admit(_ rest: inout ArraySlice<OwedDelivery>) -> [PushRequest] {
        let now = now()
        let (requests, taken) = state.withLock { state in
            let count = min(rest.count, state.tracker.room)
            var requests: [PushRequest] = []
            requests.reserveCapacity(count)
            for delivery in rest.prefix(count) {
                let ticket = state.tracker.admit(delivery, at: now)
                if let ending = ending(of: delivery, attempts: 0, at: now, in: &state) {
                    state.tracker.settle(ticket, ending)
                } else {
                    requests.append(PushRequest(delivery.delivery, ticket: ticket))
                }
            }
            return (requests, count)
        }
        rest.removeFirst(taken)
        if requests.count < taken { somethingSettled.raise() }
        return requests
    }

    /// What becomes of a delivery that need not or must not be sent now; `nil` sends it.
    func ending(
        of delivery: OwedDelivery, attempts: UInt16, reason: String = "", at now: Timestamp,
        in state: inout State
    ) -> Resolution? {
        if let ending = judge.ending(ofUnsent: delivery, attempts: attempts, reason, at: now) {
            return ending
        }
        if state.deadTokens.holds(delivery.delivery) {
            return Resolution(
                deadLetter: DeadLetter(
                    delivery: delivery, attempts: attempts, status: 0,
                    reason: "the device token is dead", at: now))
        }
        let halt = state.halts.halt(of: delivery.delivery, at: now, pause: judge.pause)
        guard let halt else { return nil }
        return judge.waiting(
            delivery, attempts: attempts, until: halt.until, status: 0, reason: halt.reason,
            at: now)
    }

    // MARK: Answers

    /// Settles answers.
    ///
    /// It runs on the gateway's thread.
    private func take(_ completions: [PushCompletion]) {
        let now = now()
        let (alarms, tally) = state.withLock { state in
            var alarms: [OutcomeJudge.Halt] = []
            var tally = DeliveryMeter.Tally()
            for completion in completions {
                let halt = settle(completion, at: now, in: &state, tally: &tally)
                if let halt { alarms.append(halt) }
            }
            state.settledSinceStep += completions.count
            return (alarms, tally)
        }
        somethingSettled.raise()
        meter.count(tally)
        for alarm in alarms {
            logger.warning(
                "paused deliveries",
                metadata: ["scope": "\(alarm.scope)", "reason": "\(alarm.reason)"])
        }
    }

    private func settle(
        _ completion: PushCompletion, at now: Timestamp, in state: inout State,
        tally: inout DeliveryMeter.Tally
    ) -> OutcomeJudge.Halt? {
        let ticket = DeliveryTracker.Ticket(rawValue: completion.ticket)
        guard let (delivery, attempts) = state.tracker.openDelivery(ticket) else { return nil }
        let outcome = state.breaker.weigh(completion.outcome, of: delivery.delivery)
        let verdict = judge.judge(
            outcome, of: delivery, attempts: attempts, at: now, using: &state.generator)
        state.tracker.settle(ticket, verdict.resolution)
        tally.add(verdict.resolution.outcome, of: delivery.delivery, at: now)
        if case .accepted = outcome { state.halts.remove(for: delivery.delivery) }
        if let dead = verdict.resolution.deadToken { state.deadTokens.insert(dead) }
        guard let halt = verdict.halt else { return nil }
        return state.halts.add(halt, for: delivery.delivery.container) ? halt : nil
    }

    // MARK: For whoever asks

    /// How many deliveries and retries are open or not yet recorded.
    package var inFlight: Int { state.withLock { $0.tracker.inFlight } }

    /// The progress as it is recorded.
    package var recordedMark: ProgressMark { state.withLock { $0.tracker.recordedMark } }

    /// Lets a container's deliveries go again, after its settings were mended.
    ///
    /// New ones go at once; those that wait go when their pause is over, within
    /// ``OutcomeJudge/pause``.
    package func resume(_ container: ContainerKey) {
        state.withLock { state in
            state.halts.remove(container)
            state.breaker.reset(container)
        }
    }

    /// Looks for due retries now, after somebody else wrote some.
    package func workRetries() {
        retriesChanged.raise()
    }
}

extension PushRequest {
    init(_ delivery: Delivery, ticket: DeliveryTracker.Ticket) {
        self.init(
            ticket: ticket.rawValue, deliveryID: delivery.id, container: delivery.container,
            environment: delivery.gatewayEnvironment, token: delivery.token,
            notification: delivery.notification)
        gateway = delivery.gateway
        recipient = PushRecipient(
            owner: delivery.owner, deviceID: delivery.deviceID, position: delivery.ordinal.position)
    }
}

/// Joins the gateway and the worker, which need each other to be made.
private final class AnswerBox: Sendable {
    private let sink = Mutex<PushCompletionSink?>(nil)

    func connect(_ sink: @escaping PushCompletionSink) {
        self.sink.withLock { $0 = sink }
    }

    func deliver(_ completions: [PushCompletion]) {
        sink.withLock { $0 }?(completions)
    }
}
