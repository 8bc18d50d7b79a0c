import Logging
import RelayModel
import Storage
import Synchronization

extension DeliveryWorker {
    /// Records steps and sends retries until the task is cancelled.
    ///
    /// - Throws: ``Storage/StorageError`` when the progress can no longer be recorded, because
    ///   another process owns it or the store has failed. The relay must stop then.
    package func run() async throws {
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error(
                "cannot read the waiting deliveries; trying again", metadata: ["reason": "\(error)"]
            )
        }
        let waiting = try await patience.attempt {
            try await progress.collapsingRetries(limit: CollapseMemory.limit)
        }
        ledger.withState { $0.recall(waiting) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.recordSteps() }
            group.addTask { try await self.sendRetries() }
            group.addTask { try await self.watchSlowAnswers() }
            group.addTask { try await self.watchReleases() }
            group.addTask { try await self.watchConnections() }
            group.addTask { try await self.watchHalts() }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    // MARK: Steps

    private func recordSteps() async throws {
        while !Task.isCancelled {
            await ledger.wait(as: .steps)
            // Deliveries that settle meanwhile raise the signal again.
            _ = try await recordStep(within: nil)
            if !ledger.withState({ $0.hasFullStep }) {
                try await clock.sleep(for: ledger.settings.stepInterval)
            }
        }
    }

    /// Records one step, and returns whether there was anything to record.
    ///
    /// A step that was on its way when ``run()`` was cancelled is recorded first.
    func recordStep(within bound: Duration?) async throws -> Bool {
        guard let step = ledger.withState({ $0.nextStep() }) else { return false }
        try await record(step, within: bound)
        watchPresence(of: step.retries)
        ledger.decide { $0.stepRecorded(step) }
        return true
    }

    /// Records a step.
    ///
    /// While the disk is full it waits for room, because nothing may be lost.
    private func record(_ step: SettledStep, within bound: Duration?) async throws {
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error(
                "cannot record the progress; trying again", metadata: ["reason": "\(error)"])
        }
        try await patience.attempt(within: bound) {
            CrashPoint.settle.reach()
            try await progress.settle(step)
            CrashPoint.settled.reach()
        }
    }

    // MARK: Retries

    /// The number of retries that are read at a time.
    private static let retriesPerRead = 256

    private func sendRetries() async throws {
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error(
                "cannot read the due deliveries; trying again", metadata: ["reason": "\(error)"])
        }
        while !Task.isCancelled {
            // A store on a server may be away for a while, so the relay tries again.
            switch try await patience.attempt({ try await workDue() }) {
            case .more: continue
            case .nothing(let next): await waitForRetries(until: next)
            }
        }
    }

    /// The result of looking for due retries.
    private enum DueWork {
        /// There may be more.
        case more
        /// Nothing is due until this time, if it is known.
        case nothing(until: Timestamp?)
    }

    /// Sends due retries.
    ///
    /// It may be called again after a failure.
    private func workDue() async throws -> DueWork {
        try await closeDueDigests()
        if try await sendDueRetries() { return .more }
        if try await progress.renewWaits(at: ledger.now()) > 0 { return .more }
        let look = retryLook
        let next =
            look.room == 0
            ? nil
            : try await progress.nextRetryDue(excluding: look.excluded) {
                look.held.contains($0)
            }
        let digest = try await progress.nextDigestDue()
        return .nothing(until: [next, look.nextTrial, digest].compactMap(\.self).min())
    }

    /// Sends due retries, and returns whether there may be more.
    private func sendDueRetries() async throws -> Bool {
        let look = retryLook
        guard look.room > 0 else { return false }
        var due = try await progress.dueRetries(
            at: ledger.now(), limit: min(Self.retriesPerRead, look.room), excluding: look.excluded
        ) { look.held.contains($0) }
        guard !due.isEmpty else { return false }
        let ended = progress.endedDevicesCount
        ledger.withStateNow { state, _ in state.registryIsAsked() }
        let withdrawn = try await progress.withdrawals(among: due.map(\.delivery))
        let kindness = try await progress.kindness(among: due.map(\.delivery))
        for index in due.indices where !kindness.isEmpty {
            due[index].delivery.kindness = kindness[due[index].delivery.delivery.id]
        }
        try await learnThrottles(of: due.map(\.delivery))
        let isHeard = ledger.isHeard
        let admission = ledger.withStateNow { [due] in
            $0.admit(due: due, readAfter: look, withdrawn: withdrawn, isHeard: isHeard, at: $1)
        }
        act(on: admission, judgedAt: ended)
        return admission.taken > 0
    }

    /// Turns digests whose time has come into retries.
    private func closeDueDigests() async throws {
        while true {
            let now = ledger.now()
            let due = try await progress.dueDigests(at: now, limit: Self.retriesPerRead)
            guard !due.isEmpty else { return }
            let closing = due.map { ClosingDigest($0, as: $0.delivery) }
            guard try await progress.close(closing, at: now) > 0 else { return }
        }
    }

    private var retryLook: DeliveryState.RetryLook {
        ledger.withStateNow { $0.retryLook(at: $1) }
    }

    /// Waits until `moment`, or until retries change.
    ///
    /// It waits at most a minute, so that retries that other processes wrote are found.
    private func waitForRetries(until moment: Timestamp?) async {
        let wait = moment.map { max(.zero, $0.duration(since: ledger.now())) } ?? .seconds(60)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await self.clock.sleep(for: min(wait, .seconds(60))) }
            group.addTask { await self.ledger.wait(as: .retries) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Looks for due retries as soon as a setting that held deliveries back was edited.
    private func watchReleases() async throws {
        for await _ in progress.heldReleased { ledger.workRetries() }
        // There are no more signals, but due retries are found anyway.
        try await waitForever()
    }

    /// Waits until the task is cancelled.
    ///
    /// A loop that returned would end the other loops.
    private func waitForever() async throws {
        let (silence, never) = AsyncStream.makeStream(of: Void.self)
        for await _ in silence {}
        never.finish()
        try Task.checkCancellation()
    }

    /// Starts watching the connections for which deliveries wait, now that these are durable.
    private func watchPresence(of retries: [Retry]) {
        guard let presence = ledger.presence else { return }
        let waiting = retries.filter { $0.reason.hold == .connected }
        if !waiting.isEmpty { presence.watch(waiting.map(\.delivery.delivery)) }
    }

    /// Judges deliveries that waited for a connection again, as soon as the waits have a result.
    private func watchConnections() async throws {
        guard let presence = ledger.presence else { return try await waitForever() }
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error(
                "cannot release deliveries that waited for connections; trying again",
                metadata: ["reason": "\(error)"])
        }
        while true {
            let decided = await presence.decided()
            try Task.checkCancellation()
            let now = ledger.now()
            try await patience.attempt {
                try await progress.release(decided, heldFor: .connected, at: now)
            }
            ledger.workRetries()
        }
    }

    // MARK: Halts

    /// Ends halts for which nothing waits any more, for example because the waiting deliveries were
    /// withdrawn or have expired.
    private func watchHalts() async throws {
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error(
                "cannot check which halts have waiting deliveries; trying again",
                metadata: ["reason": "\(error)"])
        }
        while !Task.isCancelled {
            try await clock.sleep(for: Halts.idleTime)
            let untried = ledger.withStateNow { $0.rules.halts.untried(at: $1) }
            guard !untried.isEmpty else { continue }
            let waiting = try await patience.attempt { try await haltsWaitedFor() }
            for halt in untried where !waiting.contains(halt) {
                ledger.decideNow { $0.end(untried: halt, at: $1) }
            }
        }
    }

    /// Returns the halts for which something waits.
    ///
    /// It looks at all lanes at once. If a gateway is away for long, there may be as many untried
    /// halts as there are lanes.
    private func haltsWaitedFor() async throws -> Set<Halts.Key> {
        let keys = Mutex<Set<Halts.Key>>([])
        _ = try await progress.nextRetryDue(excluding: []) { lane in
            keys.withLock { $0.formUnion(Halts.Key.all(of: lane)) }
            return true
        }
        return keys.withLock { $0 }
    }

    // MARK: Slow answers

    private func watchSlowAnswers() async throws {
        while !Task.isCancelled {
            try await clock.sleep(for: ledger.settings.slowAfter / 2)
            ledger.decideNow { $0.adopt(at: $1) }
        }
    }
}
