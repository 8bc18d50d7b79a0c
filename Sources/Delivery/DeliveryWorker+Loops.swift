import Gateway
import Logging
import RelayModel
import Storage
import Synchronization

extension DeliveryWorker {
    /// Records steps and sends retries until the task is cancelled.
    ///
    /// - Throws: ``Storage/StorageError`` when the progress cannot be recorded any more: another
    ///   process owns it, or the store has failed. The relay must stop then.
    package func run() async throws {
        try await recallCollapses()
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
        while try await recordStep(within: bound) {}
    }

    // MARK: Steps

    private func recordSteps() async throws {
        while !Task.isCancelled {
            await somethingSettled.wait()
            // What settles meanwhile raises the signal again.
            _ = try await recordStep(within: nil)
            let isFew = state.withLock { $0.settledSinceStep < settings.stepSize }
            if isFew { try await clock.sleep(for: settings.stepInterval) }
        }
    }

    /// Records one step, and says whether there was anything to record.
    ///
    /// A step that was on its way when ``run()`` was cancelled is recorded first.
    private func recordStep(within bound: Duration?) async throws -> Bool {
        let step = state.withLock { state in
            state.settledSinceStep = 0
            return state.tracker.unrecordedStep ?? state.tracker.takeStep()
        }
        guard let step else { return false }
        try await record(step, within: bound)
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
    private func record(_ step: SettledStep, within bound: Duration?) async throws {
        let patience = StorePatience(clock: clock) { [logger] error in
            logger.error("cannot record the progress yet", metadata: ["reason": "\(error)"])
        }
        try await patience.attempt(within: bound) {
            CrashPoint.settle.reach()
            try await progress.settle(step)
            CrashPoint.settled.reach()
        }
    }

    // MARK: Retries

    /// What waits from before the start knows of what is newer than it.
    private func recallCollapses() async throws {
        let waiting = try await progress.collapsingRetries(limit: CollapseMemory.limit)
        state.withLock { state in
            for retry in waiting { state.collapses.insert(retry.delivery.delivery) }
        }
    }

    private func sendRetries() async throws {
        while !Task.isCancelled {
            if try await sendDueRetries() { continue }
            if try await progress.renewWaits(at: now()) > 0 { continue }
            let look = retryLook
            let next =
                look.room == 0
                ? nil
                : try await progress.nextRetryDue(excluding: look.excluded) {
                    look.held.contains($0)
                }
            await waitForRetries(until: [next, look.nextTrial].compactMap(\.self).min())
        }
    }

    /// Sends what is due, and says whether there may be more.
    private func sendDueRetries() async throws -> Bool {
        let look = retryLook
        guard look.room > 0 else { return false }
        let due = try await progress.dueRetries(
            at: now(), limit: min(Self.retriesPerRead, look.room), excluding: look.excluded
        ) { look.held.contains($0) }
        guard !due.isEmpty else { return false }
        let withdrawn = try await progress.withdrawals(among: due.map(\.delivery))
        let now = now()
        let (requests, admitted, tally) = state.withLock { state in
            var requests: [PushRequest] = []
            var admitted = 0
            for retry in state.inOrderOfTrial(due) {
                let withdrawal = withdrawn[retry.delivery.delivery.id]
                if take(retry, withdrawal, at: now, in: &state, into: &requests) { admitted += 1 }
            }
            return (requests, admitted, state.takeTally())
        }
        meter.count(tally)
        gateway.send(requests)
        if requests.count < admitted { somethingSettled.raise() }
        return admitted > 0
    }

    /// Takes a retry up, unless its lane waits: then its row stays as it is.
    private func take(
        _ retry: Retry, _ withdrawal: Withdrawal?, at now: Timestamp, in state: inout State,
        into requests: inout [PushRequest]
    ) -> Bool {
        let delivery = retry.delivery
        let decision = decide(
            on: delivery, attempts: retry.attempts, reason: retry.reason, withdrawal, at: now,
            in: &state)
        if case .wait = decision { return false }
        let ticket = state.tracker.admit(retry)
        if case .settle(let ending) = decision {
            state.settle(ticket, ending, of: delivery.delivery, at: now)
        } else {
            requests.append(PushRequest(delivery.delivery, ticket: ticket))
        }
        return true
    }

    /// Retries that are read at a time.
    private static let retriesPerRead = 256

    /// What is to be known before retries are read.
    private struct RetryLook {
        /// The retries that must not be taken up.
        let excluded: Set<DeliveryID>
        /// How many others may be.
        let room: Int
        let held: Halts.Held
        let nextTrial: Timestamp?
    }

    private var retryLook: RetryLook {
        let now = now()
        return state.withLock { state in
            let room = settings.retryWindow - state.tracker.openRetries
            return RetryLook(
                excluded: state.tracker.retriesInFlight, room: max(0, room),
                held: state.halts.held(at: now), nextTrial: state.halts.nextTrial(after: now))
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
            let (news, lanes) = state.withLock { state in
                let opened = now.advanced(by: .zero - settings.slowAfter)
                var news = WorkerNews()
                for (container, halt) in state.gatewayBreaker.look(at: now) {
                    news.add(halt, for: container, to: &state.halts, at: now)
                }
                let lanes = state.tracker.adoptDeliveries(openSinceBefore: opened, at: now)
                for lane in lanes {
                    let halt = state.gatewayBreaker.noteSilence(
                        in: lane, since: opened, at: now)
                    guard let halt else { continue }
                    news.add(halt, for: lane.container, to: &state.halts, at: now)
                }
                return (news, lanes)
            }
            tell(news)
            guard !lanes.isEmpty else { continue }
            flow?.ended(lanes.map { PushEnd(container: $0.container, latency: .zero) })
            var tally = DeliveryMeter.Tally()
            tally.add(lanes.count, .adopted)
            meter.count(tally)
            somethingSettled.raise()
        }
    }
}
