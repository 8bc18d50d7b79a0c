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
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error("cannot look what waits yet", metadata: ["reason": "\(error)"])
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
            // What settles meanwhile raises the signal again.
            _ = try await recordStep(within: nil)
            if !ledger.withState({ $0.hasFullStep }) {
                try await clock.sleep(for: ledger.settings.stepInterval)
            }
        }
    }

    /// Records one step, and says whether there was anything to record.
    ///
    /// A step that was on its way when ``run()`` was cancelled is recorded first.
    func recordStep(within bound: Duration?) async throws -> Bool {
        guard let step = ledger.withState({ $0.nextStep() }) else { return false }
        try await record(step, within: bound)
        watchPresence(of: step.retries)
        ledger.decide { $0.stepRecorded(step) }
        return true
    }

    /// Records a step; while the disk is full it waits for room, because nothing may be lost.
    private func record(_ step: SettledStep, within bound: Duration?) async throws {
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error("cannot record the progress yet", metadata: ["reason": "\(error)"])
        }
        try await patience.attempt(within: bound) {
            CrashPoint.settle.reach()
            try await progress.settle(step)
            CrashPoint.settled.reach()
        }
    }

    // MARK: Retries

    /// Retries that are read at a time.
    private static let retriesPerRead = 256

    private func sendRetries() async throws {
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error("cannot look for what is due yet", metadata: ["reason": "\(error)"])
        }
        while !Task.isCancelled {
            // A store on a server may be away for a while, and is asked again.
            switch try await patience.attempt({ try await workDue() }) {
            case .more: continue
            case .nothing(let next): await waitForRetries(until: next)
            }
        }
    }

    /// What came of looking for what is due.
    private enum DueWork {
        /// There may be more.
        case more
        /// Nothing is, until some moment, if one is known.
        case nothing(until: Timestamp?)
    }

    /// Sends what is due; it may be called again after a failure.
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

    /// Sends what is due, and says whether there may be more.
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

    /// Makes retries of the digests whose time has come.
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

    /// Waits until `moment` or until retries changed; without a moment for at most a minute, so
    /// that retries that somebody else wrote are found.
    private func waitForRetries(until moment: Timestamp?) async {
        let wait = moment.map { max(.zero, $0.duration(since: ledger.now())) } ?? .seconds(60)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await self.clock.sleep(for: min(wait, .seconds(60))) }
            group.addTask { await self.ledger.wait(as: .retries) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Looks again as soon as what held deliveries back was edited.
    private func watchReleases() async throws {
        for await _ in progress.heldReleased { ledger.workRetries() }
        // Nobody tells any more: what is due is found all the same.
        try await waitForever()
    }

    /// Returns when the task is cancelled: a loop that ends would end the others.
    private func waitForever() async throws {
        let (silence, never) = AsyncStream.makeStream(of: Void.self)
        for await _ in silence {}
        never.finish()
        try Task.checkCancellation()
    }

    /// Has connections asked about what waits for them, now that it is durable.
    private func watchPresence(of retries: [Retry]) {
        guard let presence = ledger.presence else { return }
        let waiting = retries.filter { $0.reason.hold == .connected }
        if !waiting.isEmpty { presence.watch(waiting.map(\.delivery.delivery)) }
    }

    /// Judges again what waited for a connection, as soon as that has come to something.
    private func watchConnections() async throws {
        guard let presence = ledger.presence else { return try await waitForever() }
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error(
                "cannot release what waited for connections", metadata: ["reason": "\(error)"])
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

    /// Ends halts for which nothing waits any more, as where what did was withdrawn or has expired.
    private func watchHalts() async throws {
        let patience = StorePatience(clock: clock) { [logger = ledger.logger] error in
            logger.error("cannot look what is halted yet", metadata: ["reason": "\(error)"])
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

    /// The halts for which something waits, if there are such.
    ///
    /// All lanes are looked at once: where a gateway is away for long, as many halts may be left
    /// untried as there are lanes.
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
