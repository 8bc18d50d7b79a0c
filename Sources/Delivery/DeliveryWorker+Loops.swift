import Gateway
import Logging
package import RelayModel
import Storage
import Synchronization

extension DeliveryWorker {
    /// Records steps and sends retries until the task is cancelled.
    ///
    /// - Throws: ``Storage/StorageError`` when the progress cannot be recorded any more: another
    ///   process owns it, or the store has failed. The relay must stop then.
    package func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.recordSteps() }
            group.addTask { try await self.sendRetries() }
            group.addTask { try await self.watchSlowAnswers() }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Stops the gateway, lets what is open finish within `bound`, and records the rest as retries.
    ///
    /// The follower must have stopped, and ``run()`` must have ended.
    ///
    /// - Throws: ``Storage/StorageError`` if the last steps cannot be recorded within `bound`; what
    ///   they hold is owed still, and is sent again after the next start.
    package func shutDown(within bound: Duration) async throws {
        await gateway.shutDown(within: bound)
        while try await recordStep(patience: bound) {}
    }

    // MARK: Steps

    private func recordSteps() async throws {
        while !Task.isCancelled {
            await somethingSettled.wait()
            // What settles meanwhile raises the signal again.
            _ = try await recordStep(patience: nil)
            let isFew = state.withLock { $0.settledSinceStep < settings.stepSize }
            if isFew { try await clock.sleep(for: settings.stepInterval) }
        }
    }

    /// Records one step, and says whether there was anything to record.
    ///
    /// A step that was on its way when ``run()`` was cancelled is recorded first.
    private func recordStep(patience: Duration?) async throws -> Bool {
        let step = state.withLock { state in
            state.settledSinceStep = 0
            return state.tracker.unrecordedStep ?? state.tracker.takeStep()
        }
        guard let step else { return false }
        try await record(step, patience: patience)
        let (mark, inFlight) = state.withLock { state in
            state.tracker.stepRecorded()
            return (state.tracker.recordedMark, state.tracker.inFlight)
        }
        meter.show(mark, inFlight: inFlight)
        roomAppeared.raise()
        rangeRoomAppeared.raise()
        // New rows may be due; and those that ended make room for others.
        if !step.retries.isEmpty || !step.endedRetries.isEmpty { retriesChanged.raise() }
        return true
    }

    /// Records a step; while the disk is full it waits for room, because nothing may be lost.
    ///
    /// It waits for `patience` altogether; without one until it is cancelled.
    private func record(_ step: SettledStep, patience: Duration?) async throws {
        var wait: Duration = .milliseconds(100)
        var waited: Duration = .zero
        while true {
            do {
                CrashPoint.settle.reach()
                try await progress.settle(step)
                return CrashPoint.settled.reach()
            } catch let error as StorageError where error.passes {
                if let patience, patience <= waited { throw error }
                logger.error(
                    "cannot record the progress yet", metadata: ["reason": "\(error)"])
                try await clock.sleep(for: wait)
                waited += wait
                wait = min(wait * 2, .seconds(5))
            }
        }
    }

    // MARK: Retries

    private func sendRetries() async throws {
        while !Task.isCancelled {
            if try await sendDueRetries() { continue }
            let (excluded, room) = retriesInFlight
            let next = room == 0 ? nil : try await progress.nextRetryDue(excluding: excluded)
            await waitForRetries(until: next)
        }
    }

    /// Sends what is due, and says whether there may be more.
    private func sendDueRetries() async throws -> Bool {
        let (excluded, room) = retriesInFlight
        guard room > 0 else { return false }
        let due = try await progress.dueRetries(
            at: now(), limit: min(256, room), excluding: excluded)
        guard !due.isEmpty else { return false }
        let now = now()
        let requests = state.withLock { state in
            due.compactMap { retry -> PushRequest? in
                let ticket = state.tracker.admit(retry)
                let ending = ending(
                    of: retry.delivery, attempts: retry.attempts, reason: retry.reason, at: now,
                    in: &state)
                guard let ending else {
                    return PushRequest(retry.delivery.delivery, ticket: ticket)
                }
                state.tracker.settle(ticket, ending)
                return nil
            }
        }
        gateway.send(requests)
        if requests.count < due.count { somethingSettled.raise() }
        return true
    }

    /// The retries that must not be taken up, and how many others may be.
    private var retriesInFlight: (excluded: Set<DeliveryID>, room: Int) {
        state.withLock { state in
            let room = settings.retryWindow - state.tracker.openRetries
            return (state.tracker.retriesInFlight, max(0, room))
        }
    }

    /// Waits until `moment` or until retries changed; without a moment for at most a minute, so
    /// that retries that somebody else wrote are found.
    private func waitForRetries(until moment: Timestamp?) async {
        let wait = moment.map { max(.zero, $0.duration(since: now())) } ?? .seconds(60)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await self.clock.sleep(for: min(wait, .seconds(60))) }
            group.addTask { await self.retriesChanged.wait() }
            await group.next()
            group.cancelAll()
        }
    }

    // MARK: Slow answers

    private func watchSlowAnswers() async throws {
        while !Task.isCancelled {
            try await clock.sleep(for: settings.slowAfter / 2)
            let now = now()
            let count = state.withLock { state in
                state.tracker.adoptDeliveries(
                    openSinceBefore: now.advanced(by: .zero - settings.slowAfter), at: now,
                    dueAt: now.advanced(by: .seconds(60)))
            }
            if count > 0 { somethingSettled.raise() }
        }
    }
}

extension DeliveryWorker {
    /// The containers and topics that wait, with the gateway's reason, ordered by name.
    package var halts: [(container: ContainerKey, reason: String)] {
        state.withLock { $0.halts.all.map { ($0.container, $0.halt.reason) } }
            .sorted { $0.0.description < $1.0.description }
    }
}

extension StorageError {
    /// Whether the same may succeed later.
    var passes: Bool {
        switch self {
        case .noRoom, .overloaded: true
        default: false
        }
    }
}
