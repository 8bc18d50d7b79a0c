package import CoreMetrics
package import Gateway
package import Logging
package import RelayModel
import Storage
import Synchronization

/// The state of all deliveries.
///
/// The gateway reports to it, and ``DeliveryWorker`` sends what it admits.
///
/// Concurrency: one lock around ``DeliveryState``, held for short synchronous stretches. The
/// actions that follow from a decision are performed after the lock is released. The ledger does
/// not know the gateway, so that a gateway that knows the ledger can be created.
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
    /// Knows which devices are connected.
    let presence: (any DevicePresence)?
    private let meter: DeliveryMeter
    let settings: DeliverySettings
    let logger: Logger
    private let signals = Signals()

    /// Creates a ledger that goes on at `mark`.
    ///
    /// - Parameters:
    ///   - mark: The progress as recorded.
    ///   - settings: The windows and times.
    ///   - judge: The judge of attempts.
    ///   - now: Returns the time of day.
    ///   - generator: The source of randomness that spreads retries.
    ///   - logger: The log for the operator.
    ///   - metrics: The factory of the metrics.
    ///   - flow: Receives how many pushes of each container are with the gateway.
    ///   - watch: Receives answers while they are observed.
    ///   - presence: Knows which devices are connected, and what they were told over their
    ///     connections.
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
        // Otherwise the metric would be 0 until something is settled.
        meter.show(mark, inFlight: 0)
    }

    /// Settles answers of the gateway.
    ///
    /// It is called on the gateway's thread.
    package func take(_ completions: [PushCompletion]) {
        let isHeard = self.isHeard
        decideNow { $0.take(completions, isHeard: isHeard, at: $1) }
    }

    /// Whether what happens to each delivery is observed.
    var isHeard: Bool { watch?.isOn() ?? false }

    // MARK: Deciding and acting

    /// Reads or decides something under the lock.
    func withState<Value: Sendable>(_ body: (inout DeliveryState) -> Value) -> Value {
        state.withLock { body(&$0) }
    }

    /// Decides something under the lock, and performs the actions that follow.
    func decide(_ body: (inout DeliveryState) -> [DeliveryAction]) {
        perform(withState(body))
    }

    /// Reads or decides something at the current time, which is read under the same lock.
    ///
    /// A time that was read before the lock could come from the clock before it was set back, and
    /// waits that are based on it would be too long. The warning is logged last, when all waits
    /// have been moved.
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

    /// Decides something at the current time, and performs the actions that follow.
    func decideNow(_ body: (inout DeliveryState, Timestamp) -> [DeliveryAction]) {
        perform(withStateNow(body))
    }

    /// Performs actions in order.
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
        case .tellEndOfHalt: logger.info("resumed deliveries")
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

    /// Shows how many halts are in force now.
    ///
    /// It repeats until the number is stable, because the gateway's thread and another one may
    /// change it at the same time.
    private func showHalts() {
        func count() -> Int { withState { $0.rules.halts.count } }
        var shown: Int
        repeat {
            shown = count()
            meter.show(halts: shown)
        } while count() != shown
    }

    /// Waits until the waiter is woken or the task is cancelled.
    func wait(as waiter: DeliveryAction.Waiter) async {
        await signals[waiter].wait()
    }

    // MARK: The clock

    /// Returns the time of day, for reading from the store.
    ///
    /// Decisions use ``withStateNow(_:)``.
    func now() -> Timestamp { withStateNow { _, now in now } }

    // MARK: For whoever asks

    /// The number of deliveries and retries that are open or not yet recorded.
    package var inFlight: Int { withState { $0.tracker.inFlight } }

    /// The counts since the start.
    package var totals: DeliveryTotals { withState { $0.totals } }

    /// The progress, as recorded.
    package var recordedMark: ProgressMark { withState { $0.tracker.recordedMark } }

    /// The halts in force, with the gateway's reasons, ordered by container.
    package var halts: [HaltInForce] { withState { $0.rules.halts.all } }

    /// The gateway's answers to each container since the start.
    package var answers: [ContainerKey: GatewayAnswers] { withState { $0.answers.answers } }

    /// Lets a container's deliveries go again, after its settings were fixed, or because the
    /// operator wants it.
    ///
    /// Returns how many halts ended.
    @discardableResult
    package func resume(_ container: ContainerKey) -> Int {
        let (ended, actions) = withState { $0.resume(container) }
        perform(actions)
        return ended
    }

    /// Looks for due retries now, after another process or part of the relay wrote some.
    package func workRetries() {
        perform([.wake(.retries)])
    }
}
