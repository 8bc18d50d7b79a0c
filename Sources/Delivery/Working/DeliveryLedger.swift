package import CoreMetrics
package import Gateway
package import Logging
package import RelayModel
import Storage
import Synchronization

/// Where deliveries stand, for all who work on them: the gateway answers to it, and
/// ``DeliveryWorker`` hands to the gateway what it admits.
///
/// Concurrency: one lock around ``DeliveryState``, held for short synchronous stretches. What
/// follows from its decisions is done after the lock is let go. It knows no gateway, so that a
/// gateway can be made that knows it.
package final class DeliveryLedger: Sendable {
    private struct Signals {
        private let steps = WakeSignal()
        private let log = WakeSignal()
        private let ranges = WakeSignal()
        private let retries = WakeSignal()

        subscript(_ waiter: DeliveryAction.Waiter) -> WakeSignal {
            switch waiter {
            case .steps: steps
            case .log: log
            case .ranges: ranges
            case .retries: retries
            }
        }
    }

    private let state: Mutex<DeliveryState>
    private let wallClock: @Sendable () -> Timestamp
    private let flow: PushFlow?
    private let watch: AnswerWatch?
    /// Who knows which devices are connected.
    let presence: (any DevicePresence)?
    private let meter: DeliveryMeter
    let settings: DeliverySettings
    let logger: Logger
    private let signals = Signals()

    /// Opens a ledger that goes on at `mark`.
    ///
    /// - Parameters:
    ///   - mark: The progress as recorded.
    ///   - settings: Windows and times.
    ///   - judge: What follows from an answer.
    ///   - now: Tells the time of day.
    ///   - generator: Spreads retries.
    ///   - logger: Hears what somebody should act on.
    ///   - metrics: Where it counts.
    ///   - flow: Is told how many pushes of each container are with the gateway.
    ///   - watch: Is told of answers while somebody listens.
    ///   - presence: Knows which devices are connected, and what they were told there.
    package init(
        at mark: ProgressMark, settings: DeliverySettings = DeliverySettings(),
        judge: OutcomeJudge = OutcomeJudge(), now: @escaping @Sendable () -> Timestamp,
        generator: any RandomNumberGenerator & Sendable, logger: Logger,
        metrics: any MetricsFactory = MetricsSystem.factory, flow: PushFlow? = nil,
        watch: AnswerWatch? = nil, presence: (any DevicePresence)? = nil
    ) {
        state = Mutex(
            DeliveryState(
                mark: mark, settings: settings, judge: judge, generator: generator,
                tellsEnds: flow != nil, presence: presence))
        self.presence = presence
        self.settings = settings
        self.flow = flow
        self.watch = watch
        self.logger = logger
        wallClock = now
        meter = DeliveryMeter(metrics)
        // It would be shown at 0 until something is settled.
        meter.show(mark, inFlight: 0)
    }

    /// Settles answers of the gateway.
    ///
    /// It runs on the gateway's thread.
    package func take(_ completions: [PushCompletion]) {
        let isHeard = self.isHeard
        decideNow { $0.take(completions, isHeard: isHeard, at: $1) }
    }

    /// Whether somebody listens to what becomes of each delivery.
    var isHeard: Bool { watch?.isOn() ?? false }

    // MARK: Deciding and acting

    /// Reads or decides something under the lock.
    func withState<Value: Sendable>(_ body: (inout DeliveryState) -> Value) -> Value {
        state.withLock { body(&$0) }
    }

    /// Decides something under the lock, and does what follows from it.
    func decide(_ body: (inout DeliveryState) -> [DeliveryAction]) {
        perform(withState(body))
    }

    /// Reads or decides something at this moment: the clock is read under the same lock.
    ///
    /// A moment that was read before could be of the clock as it was before it was set back, and
    /// what is decided by it would wait for as much longer. The warning comes last, so that nobody
    /// sees a clock that was set back and waits that were not.
    func withStateNow<Value: Sendable>(
        _ body: (inout DeliveryState, Timestamp) -> Value
    ) -> Value {
        let (value, step) = state.withLock { state in
            let now = wallClock()
            let step = state.note(now)
            return (body(&state, now), step)
        }
        if let step {
            logger.warning(
                "the clock was set back",
                metadata: ["seconds": .stringConvertible(step / .seconds(1))])
            perform(.wake(.retries))
        }
        return value
    }

    /// Decides something at this moment, and does what follows from it.
    func decideNow(_ body: (inout DeliveryState, Timestamp) -> [DeliveryAction]) {
        perform(withStateNow(body))
    }

    /// Does what was decided, in its order.
    func perform(_ actions: [DeliveryAction]) {
        for action in actions { perform(action) }
    }

    private func perform(_ action: DeliveryAction) {
        switch action {
        case .began(let requests): flow?.began(requests)
        case .ended(let ends): flow?.ended(ends)
        case .tellAnswers(let answers): watch?.tell(answers)
        case .count(let tally): meter.count(tally)
        case .showHalts: showHalts()
        case .showProgress(let mark, let inFlight): meter.show(mark, inFlight: inFlight)
        case .wake(let waiter): signals[waiter].raise()
        case .tellEndOfHalt: logger.info("deliveries go on")
        case .tellHalt(let halt, let container):
            logger.warning(
                "paused deliveries",
                metadata: [
                    "container": "\(container)", "scope": "\(halt.scope.words)",
                    "reason": "\(halt.reason)",
                ])
        case .tellAlarm(let alarm):
            logger.warning(
                "the gateway refused pushes",
                metadata: [
                    "container": "\(alarm.container)",
                    "status": .stringConvertible(alarm.answer.status),
                    "reason": "\(alarm.answer.reason)", "meaning": "\(alarm.explanation)",
                    "count": .stringConvertible(alarm.count),
                ])
        }
    }

    /// Shows how many halts are in force by now: whoever shows it last shows what is so, also
    /// where the gateway's thread and somebody else have changed it at the same time.
    private func showHalts() {
        func count() -> Int { withState { $0.rules.halts.count } }
        var shown: Int
        repeat {
            shown = count()
            meter.show(halts: shown)
        } while count() != shown
    }

    /// Returns when somebody was woken, or the task is cancelled.
    func wait(as waiter: DeliveryAction.Waiter) async {
        await signals[waiter].wait()
    }

    // MARK: The clock

    /// The time of day, to read by; what is decided is decided by ``withStateNow(_:)``.
    func now() -> Timestamp { withStateNow { _, now in now } }

    // MARK: For whoever asks

    /// How many deliveries and retries are open or not yet recorded.
    package var inFlight: Int { withState { $0.tracker.inFlight } }

    /// What was counted since the start.
    package var totals: DeliveryTotals { withState { $0.totals } }

    /// The progress as it is recorded.
    package var recordedMark: ProgressMark { withState { $0.tracker.recordedMark } }

    /// What waits, with the gateway's reason, ordered by container.
    package var halts: [HaltInForce] { withState { $0.rules.halts.all } }

    /// What the gateway said to each container since the start.
    package var answers: [ContainerKey: GatewayAnswers] { withState { $0.answers.answers } }

    /// Lets a container's deliveries go again, after its settings were mended, or because somebody
    /// says so; returns how many halts ended.
    @discardableResult
    package func resume(_ container: ContainerKey) -> Int {
        let (ended, actions) = withState { $0.resume(container) }
        perform(actions)
        return ended
    }

    /// Looks for due retries now, after somebody else wrote some.
    package func workRetries() {
        perform([.wake(.retries)])
    }
}
