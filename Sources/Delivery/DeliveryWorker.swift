package import CoreMetrics
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
        /// A crash repeats these at the most, as many again that are adopted as retries while the
        /// gateway does not answer, and besides the retries of ``retryWindow``.
        package var window = Limits.maximumDeliveriesInFlight
        /// Deliveries of ranges admitted and not yet passed, which a crash repeats too.
        ///
        /// They share the gateway with the log's: few, so that those need not wait long.
        package var rangeWindow = 512
        /// Retries that are worked and have no recorded end, which a crash repeats too.
        package var retryWindow = 2048
        /// The least time between two steps, unless ``stepSize`` is reached.
        package var stepInterval: Duration = .milliseconds(10)
        /// Settled deliveries that are recorded without waiting.
        package var stepSize = 512
        /// How long the front of the window may wait for an answer before it becomes a retry.
        package var slowAfter: Duration = .seconds(2)
        /// Background pushes that one device gets in an hour; 0 for any number.
        ///
        /// Apple asks for two or three.
        package var silentPushesPerHour = 0

        /// Creates the default settings.
        package init() {}
    }

    struct State: ~Copyable {
        var tracker: DeliveryTracker
        var halts = Halts()
        var tokenBreaker = TokenVerdictBreaker()
        var gatewayBreaker = GatewayBreaker()
        var pacing: DevicePacing
        var rangePace: PushPace
        var collapses = CollapseMemory()
        var generator: any RandomNumberGenerator & Sendable
        var deadTokens = DeadTokenMemory()
        var unanswered = UnansweredMemory()
        var alarms = AlarmBook()
        /// Pushes of the log that ended and were not told yet, if anybody is to be told.
        var ends: [PushEnd]?
        /// What is not yet counted.
        var tally = DeliveryMeter.Tally()
        var settledSinceStep = 0
    }

    let state: Mutex<State>
    let settings: Settings
    let progress: any ShardProgress
    let judge: OutcomeJudge
    let clock: any Clock<Duration>
    let wallClock: @Sendable () -> Timestamp
    let clockWatch = Mutex(ClockWatch())
    let logger: Logger
    let meter: DeliveryMeter
    let somethingSettled = WakeSignal()
    let roomAppeared = WakeSignal()
    let retriesChanged = WakeSignal()
    let rangeRoomAppeared = WakeSignal()
    let gateway: any PushGateway
    let flow: PushFlow?

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
    ///   - metrics: Where it counts.
    ///   - flow: Is told how many pushes of each container are with the gateway.
    ///   - makeGateway: Makes the gateway that answers to the given sink.
    package init(
        at mark: ProgressMark, recordingTo progress: any ShardProgress,
        settings: Settings = Settings(), judge: OutcomeJudge = OutcomeJudge(),
        clock: any Clock<Duration>, now: @escaping @Sendable () -> Timestamp,
        generator: any RandomNumberGenerator & Sendable, logger: Logger,
        metrics: any MetricsFactory = MetricsSystem.factory, flow: PushFlow? = nil,
        gateway makeGateway: (@escaping PushCompletionSink) throws -> any PushGateway
    ) rethrows {
        state = Mutex(
            State(
                tracker: DeliveryTracker(
                    mark: mark, window: settings.window, rangeWindow: settings.rangeWindow),
                pacing: DevicePacing(silentPerHour: settings.silentPushesPerHour),
                rangePace: PushPace(most: settings.rangeWindow),
                generator: generator, ends: flow.map { _ in [] }))
        self.flow = flow
        self.progress = progress
        self.settings = settings
        self.judge = judge
        self.clock = clock
        wallClock = now
        self.logger = logger
        meter = DeliveryMeter(metrics)
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
        // Before the deliveries: a part of those may be passed while the rest waits for room, and
        // must not be known without what goes to inboxes. What is kept twice is one.
        while !state.withLock({ $0.tracker.add(batch.inbox) }) {
            try Task.checkCancellation()
            await roomAppeared.wait()
        }
        if !batch.inbox.isEmpty { somethingSettled.raise() }
        var rest = batch.deliveries[...]
        while !rest.isEmpty {
            try Task.checkCancellation()
            let room = state.withLock { min(rest.count, $0.tracker.room) }
            let withdrawn = try await withdrawals(amongNew: rest.prefix(room))
            let requests = admit(room, of: &rest, withdrawn)
            flow?.began(requests)
            gateway.send(requests)
            CrashPoint.sent.reach()
            if !rest.isEmpty { await roomAppeared.wait() }
        }
        if let position = batch.finished {
            state.withLock { $0.tracker.finish(position, ranges: batch.ranges) }
            somethingSettled.raise()
        }
    }

    private func admit(
        _ most: Int, of rest: inout ArraySlice<OwedDelivery>,
        _ withdrawn: [DeliveryID: Withdrawal]
    ) -> [PushRequest] {
        let now = now()
        let (requests, taken, tally) = state.withLock { state in
            let count = min(most, state.tracker.room)
            var requests: [PushRequest] = []
            requests.reserveCapacity(count)
            for delivery in rest.prefix(count) {
                let ticket = state.tracker.admit(delivery, at: now)
                state.collapses.insert(delivery.delivery)
                let withdrawal = withdrawn.isEmpty ? nil : withdrawn[delivery.delivery.id]
                if let ending = firstEnding(of: delivery, withdrawal, at: now, in: &state) {
                    state.settle(ticket, ending, of: delivery.delivery, at: now)
                } else {
                    requests.append(PushRequest(delivery.delivery, ticket: ticket))
                }
            }
            return (requests, count, state.takeTally())
        }
        rest.removeFirst(taken)
        meter.count(tally)
        if requests.count < taken { somethingSettled.raise() }
        return requests
    }

    // MARK: Answers

    /// Settles answers.
    ///
    /// It runs on the gateway's thread.
    private func take(_ completions: [PushCompletion]) {
        let now = now()
        let (news, tally, endedOfRanges, ends) = state.withLock { state in
            var news = WorkerNews()
            var endedOfRanges = 0
            for completion in completions {
                settle(completion, at: now, in: &state, news: &news)
                if DeliveryTracker.Ticket(rawValue: completion.ticket).isRange {
                    state.rangePace.end(after: completion.latency)
                    endedOfRanges += 1
                }
            }
            state.settledSinceStep += completions.count
            news.haltCount = state.halts.count
            return (news, state.takeTally(), endedOfRanges, state.takeEnds())
        }
        flow?.ended(ends)
        if endedOfRanges > 0 { rangeRoomAppeared.raise() }
        // Counted first: whoever sees the progress pass a delivery finds it in the metrics.
        meter.count(tally)
        somethingSettled.raise()
        tell(news)
    }

    private func settle(
        _ completion: PushCompletion, at now: Timestamp, in state: inout State,
        news: inout WorkerNews
    ) {
        let ticket = DeliveryTracker.Ticket(rawValue: completion.ticket)
        guard let (owed, attempts) = state.tracker.openDelivery(ticket) else { return }
        let delivery = owed.delivery
        if state.tracker.isInWindow(ticket) {
            state.ends?.append(
                PushEnd(container: delivery.container, latency: completion.latency))
        }
        let outcome = state.tokenBreaker.weigh(completion.outcome, of: owed)
        let verdict = judge.judge(
            outcome, of: owed, attempts: attempts, unanswered: state.unanswered[delivery.id],
            at: now, using: &state.generator)
        state.tally.add(outcome, of: delivery)
        state.settle(ticket, verdict.resolution, of: delivery, at: now)
        state.note(outcome, of: delivery, verdict.resolution)
        if let alarm = state.alarms.note(outcome, of: delivery, at: now) {
            news.alarms.append(alarm)
        }
        let sentAt = now.advanced(by: .zero - completion.latency)
        if case .accepted = outcome, state.halts.remove(for: delivery, sentAt: sentAt) {
            news.hasEnded = true
        }
        if case .refused(let refusal) = outcome, case .retry(_, .device) = refusal.reaction,
            let dueAt = verdict.resolution.dueAt
        {
            state.pacing.hold(delivery, until: dueAt, at: now)
        }
        let broken = state.gatewayBreaker.note(outcome, of: delivery, at: now)
        if case .works = outcome.standing,
            state.halts.removeGateway(for: delivery, sentAt: sentAt)
        {
            news.hasEnded = true
        }
        for halt in [verdict.halt, broken].compactMap(\.self) {
            news.add(halt, for: delivery.container, to: &state.halts, at: now)
        }
    }

    // MARK: For whoever asks

    /// How many deliveries and retries are open or not yet recorded.
    package var inFlight: Int { state.withLock { $0.tracker.inFlight } }

    /// The progress as it is recorded.
    package var recordedMark: ProgressMark { state.withLock { $0.tracker.recordedMark } }

    /// Lets a container's deliveries go again, after its settings were mended, or because somebody
    /// says so; returns how many halts ended.
    @discardableResult
    package func resume(_ container: ContainerKey) -> Int {
        let (ended, left) = state.withLock { state in
            let before = state.halts.count
            state.halts.remove(container)
            state.tokenBreaker.reset(container)
            state.gatewayBreaker.reset(container)
            return (before - state.halts.count, state.halts.count)
        }
        meter.show(halts: left)
        retriesChanged.raise()
        return ended
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
    /// Not the function itself: a lock hands its value over as a generic one, and a function that
    /// is handed over so is wrapped anew each time, one wrap within the other, for ever.
    private struct Connection {
        var sink: PushCompletionSink?
    }

    private let connection = Mutex(Connection())

    func connect(_ sink: @escaping PushCompletionSink) {
        connection.withLock { $0.sink = sink }
    }

    func deliver(_ completions: [PushCompletion]) {
        connection.withLock { $0.sink }?(completions)
    }
}
