package import Gateway
import Logging
package import RelayModel
package import Storage

/// Sends what the log owes and records the results.
///
/// It is the thin shell around ``DeliveryState``, which is in a ``DeliveryLedger``.
///
/// Concurrency: loops in ``run()`` record steps, send retries, and watch slow answers, releases,
/// connections and halts. The gateway reports to the ledger on its own thread. Life: ``run()``
/// once, then ``shutDown(within:)`` once, after the follower has stopped.
package final class DeliveryWorker: Sendable {
    let ledger: DeliveryLedger
    let progress: any ShardProgress
    let clock: any Clock<Duration>
    private let gateway: any PushGateway

    /// Creates a worker.
    ///
    /// - Parameters:
    ///   - ledger: The state of the deliveries.
    ///   - progress: The store of steps.
    ///   - gateway: The gateway that sends pushes, and reports to `ledger`.
    ///   - clock: The clock that measures waits.
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

    /// Takes what the follower hands over.
    ///
    /// Suspends while the window is full.
    ///
    /// - Throws: `CancellationError` if the task is cancelled after only a part of the batch was
    ///   taken. That part is settled, and the rest is owed again after the next start.
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

    /// Takes inbox entries.
    ///
    /// Suspends while too many wait.
    ///
    /// They come before the deliveries of the same batch. Some of these may be passed while the
    /// rest waits for room, and must not be passed without the inbox entries. An entry that is
    /// recorded twice is stored once.
    private func accept(_ inbox: [InboxEntry]) async throws {
        while true {
            if let actions = ledger.withState({ $0.add(inbox) }) {
                return ledger.perform(actions)
            }
            try Task.checkCancellation()
            await ledger.wait(as: .log)
        }
    }

    /// Takes firings of entries.
    ///
    /// Suspends while too many wait.
    ///
    /// They come before the deliveries of the same batch, because the deliveries of a later entry
    /// imply that these firings are passed.
    private func accept(_ firings: [FiringNote]) async throws {
        guard !firings.isEmpty else { return }
        while ledger.withState({ !$0.add(firings: firings) }) {
            try Task.checkCancellation()
            await ledger.wait(as: .log)
        }
    }

    /// Takes deliveries of a range.
    ///
    /// Suspends while the window of ranges is full, or while as many as its pace allows are with
    /// the gateway.
    ///
    /// - Throws: `CancellationError` if the task is cancelled after only a part of the batch was
    ///   taken. The rest is still owed.
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

    /// Performs the actions that follow from an admission, and then sends.
    ///
    /// `ended` is the number of registrations that had ended before the store was asked which
    /// deliveries are withdrawn. The gateway itself checks for registrations that end later, while
    /// a request waits there.
    func act(on admission: Admission, judgedAt ended: UInt64) {
        ledger.perform(admission.actions)
        guard !admission.requests.isEmpty else { return }
        var requests = admission.requests
        for index in requests.indices { requests[index].registration?.ends = ended }
        gateway.send(requests)
    }

    /// Reads what must be known about `deliveries`, which were not sent before.
    ///
    /// It retries for as long as the store is away, so that the task that hands them over neither
    /// ends nor hands them over twice.
    ///
    /// - Returns: The deliveries that no longer belong to their recipients.
    private func judged(
        _ deliveries: ArraySlice<OwedDelivery>
    ) async throws -> [DeliveryID: Withdrawal] {
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error(
                "cannot check which deliveries may be sent; trying again",
                metadata: ["reason": "\(error)"])
        }
        return try await patience.attempt {
            try await learnThrottles(of: deliveries)
            return try await withdrawals(amongNew: deliveries)
        }
    }

    /// Returns those of `deliveries`, which were not sent before, that no longer belong to their
    /// recipients.
    ///
    /// Ended registrations are remembered, so the store is only asked about their deliveries. It is
    /// always asked about waiting deliveries, whose registrations may have ended long ago.
    private func withdrawals(
        amongNew deliveries: ArraySlice<OwedDelivery>
    ) async throws -> [DeliveryID: Withdrawal] {
        let ended = progress.endedDevices(among: deliveries.lazy.map(\.deviceSerial))
        guard !ended.isEmpty else { return [:] }
        return try await progress.withdrawals(
            among: deliveries.filter { ended.contains($0.deviceSerial) })
    }

    /// Adds the durable throttle places of `deliveries` that the state does not remember.
    ///
    /// This must happen before they are decided on.
    func learnThrottles(of deliveries: some Sequence<OwedDelivery> & Sendable) async throws {
        // Most deliveries have no throttle, and need no lock.
        let throttled = deliveries.filter { $0.kindness?.subscription.throttle != nil }
        guard !throttled.isEmpty else { return }
        let unknown = ledger.withState { $0.unknownLines(among: throttled) }
        guard !unknown.isEmpty else { return }
        let pasts = try await progress.throttlePasts(of: Array(unknown), at: ledger.now())
        ledger.withStateNow { $0.learn(pasts, at: $1) }
    }

    // MARK: The end

    /// Stops the gateway, lets open requests finish within `bound`, and records the rest as
    /// retries.
    ///
    /// The follower must have stopped, and ``run()`` must have ended.
    ///
    /// - Parameters:
    ///   - bound: The longest wait for answers, and for each step.
    ///   - silence: The longest wait without any answer, or `nil` for `bound`.
    /// - Throws: ``Storage/StorageError`` if the last steps cannot be recorded within `bound`.
    ///   Their deliveries are still owed, and are sent again after the next start.
    package func shutDown(within bound: Duration, silence: Duration? = nil) async throws {
        await gateway.shutDown(within: bound, silence: silence ?? bound)
        while try await recordStep(within: bound) {}
    }

    // MARK: For whoever asks

    /// The number of deliveries and retries that are open or not yet recorded.
    package var inFlight: Int { ledger.inFlight }

    /// The counts since the start.
    package var totals: DeliveryTotals { ledger.totals }

    /// The progress, as recorded.
    package var recordedMark: ProgressMark { ledger.recordedMark }

    /// The halts in force, with the gateway's reasons, ordered by container.
    package var halts: [HaltInForce] { ledger.halts }

    /// The gateway's answers to each container since the start.
    package var answers: [ContainerKey: GatewayAnswers] { ledger.answers }

    /// Lets a container's deliveries go again.
    ///
    /// Returns how many halts ended.
    @discardableResult
    package func resume(_ container: ContainerKey) -> Int { ledger.resume(container) }

    /// Looks for due retries now, after another process or part of the relay wrote some.
    package func workRetries() { ledger.workRetries() }
}
