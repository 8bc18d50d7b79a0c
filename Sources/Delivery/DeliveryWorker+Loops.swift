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
    package func shutDown(within bound: Duration) async throws {
        await gateway.shutDown(within: bound)
        while try await recordStep() {}
    }

    // MARK: Steps

    private func recordSteps() async throws {
        while !Task.isCancelled {
            await somethingSettled.wait()
            while try await recordStep() {}
            let isFew = state.withLock { $0.settledSinceStep < settings.stepSize }
            if isFew { try await clock.sleep(for: settings.stepInterval) }
        }
    }

    /// Records one step, and says whether there was anything to record.
    private func recordStep() async throws -> Bool {
        let step = state.withLock { state in
            state.settledSinceStep = 0
            return state.tracker.takeStep()
        }
        guard let step else { return false }
        try await record(step)
        let (mark, inFlight) = state.withLock { state in
            state.tracker.stepRecorded()
            return (state.tracker.recordedMark, state.tracker.inFlight)
        }
        meter.show(mark, inFlight: inFlight)
        roomAppeared.raise()
        if !step.retries.isEmpty { retriesChanged.raise() }
        return true
    }

    /// Records a step; while the disk is full it waits for room, because nothing may be lost.
    private func record(_ step: SettledStep) async throws {
        var wait: Duration = .milliseconds(100)
        while true {
            do {
                return try await progress.settle(step)
            } catch StorageError.noRoom(let reason), StorageError.overloaded(let reason) {
                logger.error(
                    "cannot record the progress yet", metadata: ["reason": "\(reason)"])
                try await clock.sleep(for: wait)
                wait = min(wait * 2, .seconds(5))
            }
        }
    }

    // MARK: Retries

    private func sendRetries() async throws {
        while !Task.isCancelled {
            if try await sendDueRetries() { continue }
            let excluded = state.withLock { $0.tracker.retriesInFlight }
            let isFull = excluded.count >= settings.retryWindow
            let next = isFull ? nil : try await progress.nextRetryDue(excluding: excluded)
            await waitForRetries(until: next)
        }
    }

    /// Sends what is due, and says whether there may be more.
    private func sendDueRetries() async throws -> Bool {
        let excluded = state.withLock { $0.tracker.retriesInFlight }
        let limit = min(256, settings.retryWindow - excluded.count)
        guard limit > 0 else { return false }
        let due = try await progress.dueRetries(at: now(), limit: limit, excluding: excluded)
        guard !due.isEmpty else { return false }
        let now = now()
        let requests = state.withLock { state in
            due.compactMap { retry -> PushRequest? in
                let ticket = state.tracker.admit(retry)
                guard let ending = ending(of: retry, at: now, in: &state) else {
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

    /// What becomes of a retry that need not or must not be sent now.
    private func ending(
        of retry: Retry, at now: Timestamp, in state: inout State
    ) -> Resolution? {
        let delivery = retry.delivery.delivery
        if let expiration = delivery.notification.expiration, expiration <= now {
            return Resolution(
                deadLetter: DeadLetter(
                    delivery: retry.delivery, attempts: retry.attempts, status: 0,
                    reason: "expired: \(retry.reason)", at: now))
        }
        guard let halt = state.halts.halt(of: delivery, at: now) else { return nil }
        return judge.waiting(
            retry.delivery, attempts: retry.attempts, until: halt.until, status: 0,
            reason: halt.reason, at: now)
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
