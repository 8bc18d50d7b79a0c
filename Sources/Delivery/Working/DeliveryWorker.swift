package import Gateway
import Logging
package import RelayModel
package import Storage

/// Sends what the log owes and records what became of it: the thin shell around ``DeliveryState``,
/// which lies in a ``DeliveryLedger``.
///
/// Concurrency: two loops in ``run()`` record steps and send retries, a third one notices slow
/// answers; the gateway answers to the ledger on its own thread. Life: ``run()`` once,
/// ``shutDown(within:)`` once, after the follower has stopped.
package final class DeliveryWorker: Sendable {
    let ledger: DeliveryLedger
    let progress: any ShardProgress
    let clock: any Clock<Duration>
    private let gateway: any PushGateway

    /// Creates a worker.
    ///
    /// - Parameters:
    ///   - ledger: Where deliveries stand.
    ///   - progress: Where steps are recorded.
    ///   - gateway: Sends pushes, and answers to `ledger`.
    ///   - clock: Measures waits.
    package init(
        on ledger: DeliveryLedger, recordingTo progress: any ShardProgress,
        through gateway: any PushGateway, clock: any Clock<Duration>
    ) {
        self.ledger = ledger
        self.progress = progress
        self.gateway = gateway
        self.clock = clock
    }

    // MARK: Accepting

    /// Takes what the follower hands over; suspends while the window is full.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, with a part of the batch taken; that
    ///   part is settled, and the rest is owed again after the next start.
    package func accept(_ batch: OwedBatch) async throws {
        try await accept(batch.inbox)
        try await accept(batch.firings)
        var rest = batch.deliveries[...]
        while !rest.isEmpty {
            try Task.checkCancellation()
            let room = ledger.withState { min(rest.count, $0.room) }
            let ended = progress.endedDevicesCount
            let withdrawn = try await judged(rest.prefix(room))
            let isHeard = ledger.isHeard
            let admission = ledger.withStateNow {
                $0.admit(rest, atMost: room, withdrawn: withdrawn, isHeard: isHeard, at: $1)
            }
            rest.removeFirst(admission.taken)
            act(on: admission, judgedAt: ended)
            CrashPoint.sent.reach()
            if !rest.isEmpty { await ledger.wait(as: .log) }
        }
        if let change = batch.madeUp { ledger.decide { $0.makeUp(change) } }
        guard let position = batch.finished else { return }
        if batch.putsOff {
            ledger.withState { $0.putOff(position) }
        } else {
            ledger.decide { $0.finish(position, ranges: batch.ranges, badges: batch.badges) }
        }
    }

    /// Takes what goes to inboxes; suspends while too many wait.
    ///
    /// Before the deliveries beside it: a part of those may be passed while the rest waits for
    /// room, and must not be known without what goes to inboxes. What is kept twice is one.
    private func accept(_ inbox: [InboxEntry]) async throws {
        while true {
            if let actions = ledger.withState({ $0.add(inbox) }) {
                return ledger.perform(actions)
            }
            try Task.checkCancellation()
            await ledger.wait(as: .log)
        }
    }

    /// Takes what entries did to subscriptions; suspends while too many wait.
    ///
    /// Before the deliveries beside it: those of a later entry say that these are passed.
    private func accept(_ firings: [FiringNote]) async throws {
        guard !firings.isEmpty else { return }
        while ledger.withState({ !$0.add(firings: firings) }) {
            try Task.checkCancellation()
            await ledger.wait(as: .log)
        }
    }

    /// Takes deliveries of a range; suspends while the window of ranges is full, or as
    /// many as its pace allows are with the gateway.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, with a part of the batch taken; the
    ///   rest is owed still.
    package func accept(_ batch: RangeBatch) async throws {
        var rest = batch.deliveries[...]
        while !rest.isEmpty {
            try Task.checkCancellation()
            let room = ledger.withState { min(rest.count, $0.rangeRoom) }
            let ended = progress.endedDevicesCount
            let withdrawn = try await judged(rest.prefix(room))
            let isHeard = ledger.isHeard
            let admission = ledger.withStateNow {
                $0.admit(
                    rest, of: batch, atMost: room, withdrawn: withdrawn, isHeard: isHeard, at: $1)
            }
            rest.removeFirst(admission.taken)
            act(on: admission, judgedAt: ended)
            if !rest.isEmpty { await ledger.wait(as: .ranges) }
        }
        if batch.isLast { ledger.decide { $0.finishRange(batch) } }
    }

    /// Does what follows from an admission, and sends last.
    ///
    /// `ended` is how many registrations had ended before it was asked which deliveries are
    /// withdrawn: of those that end later the gateway asks, for as long as a request waits there.
    func act(on admission: Admission, judgedAt ended: UInt64) {
        ledger.perform(admission.actions)
        guard !admission.requests.isEmpty else { return }
        var requests = admission.requests
        for index in requests.indices { requests[index].registration?.ends = ended }
        gateway.send(requests)
    }

    /// Asks all that is to be known of `deliveries`, which were not sent before, and again for as
    /// long as the store is away: whoever hands them over neither ends for that nor hands them over
    /// twice.
    ///
    /// - Returns: Those that are not their recipients' any more.
    private func judged(
        _ deliveries: ArraySlice<OwedDelivery>
    ) async throws -> [DeliveryID: Withdrawal] {
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error("cannot look what may be sent yet", metadata: ["reason": "\(error)"])
        }
        return try await patience.attempt {
            try await learnThrottles(of: deliveries)
            return try await withdrawals(amongNew: deliveries)
        }
    }

    /// Which of `deliveries`, which were not sent before, are not their recipients' any more.
    ///
    /// Registrations that ended are remembered, so that the store is asked for those alone. What
    /// waits is asked for always: its end may be long ago.
    private func withdrawals(
        amongNew deliveries: ArraySlice<OwedDelivery>
    ) async throws -> [DeliveryID: Withdrawal] {
        let ended = progress.endedDevices(among: deliveries.lazy.map(\.deviceSerial))
        guard !ended.isEmpty else { return [:] }
        return try await progress.withdrawals(
            among: deliveries.filter { ended.contains($0.deviceSerial) })
    }

    /// Has the state learn what the throttles of `deliveries` have let go, where it does not
    /// remember it: before anything of theirs is decided.
    func learnThrottles(of deliveries: some Sequence<OwedDelivery> & Sendable) async throws {
        // Most have none, and need no lock.
        let throttled = deliveries.filter { $0.kindness?.subscription.throttle != nil }
        guard !throttled.isEmpty else { return }
        let unknown = ledger.withState { $0.unknownLines(among: throttled) }
        guard !unknown.isEmpty else { return }
        let pasts = try await progress.throttlePasts(of: Array(unknown), at: ledger.now())
        ledger.withStateNow { $0.learn(pasts, at: $1) }
    }

    // MARK: The end

    /// Stops the gateway, lets what is open finish within `bound`, and records the rest as retries.
    ///
    /// The follower must have stopped, and ``run()`` must have ended.
    ///
    /// - Parameters:
    ///   - bound: How long answers are waited for at the most, and a step.
    ///   - silence: For how long without any answer; `nil` for as long as `bound`.
    /// - Throws: ``Storage/StorageError`` if the last steps cannot be recorded within `bound`; what
    ///   they hold is owed still, and is sent again after the next start.
    package func shutDown(within bound: Duration, silence: Duration? = nil) async throws {
        await gateway.shutDown(within: bound, silence: silence ?? bound)
        while try await recordStep(within: bound) {}
    }

    // MARK: For whoever asks

    /// How many deliveries and retries are open or not yet recorded.
    package var inFlight: Int { ledger.inFlight }

    /// What was counted since the start.
    package var totals: DeliveryTotals { ledger.totals }

    /// The progress as it is recorded.
    package var recordedMark: ProgressMark { ledger.recordedMark }

    /// What waits, with the gateway's reason, ordered by container.
    package var halts: [HaltInForce] { ledger.halts }

    /// What the gateway said to each container since the start.
    package var answers: [ContainerKey: GatewayAnswers] { ledger.answers }

    /// Lets a container's deliveries go again; returns how many halts ended.
    @discardableResult
    package func resume(_ container: ContainerKey) -> Int { ledger.resume(container) }

    /// Looks for due retries now, after somebody else wrote some.
    package func workRetries() { ledger.workRetries() }
}
