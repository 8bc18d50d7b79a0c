import Gateway
import RelayModel
import Storage

/// What is to be done with a delivery now.
enum SendDecision {
    /// It is sent.
    case send
    /// It is not sent now, or never.
    case settle(Resolution)
    /// It waits with all of its lane.
    case wait(OutcomeJudge.Halt)
}

extension DeliveryWorker {
    /// Which of `deliveries`, which were not sent before, are not their recipients' any more.
    ///
    /// Registrations that ended are remembered, so that the store is asked for those alone. What
    /// waits is asked for always: its end may be long ago.
    func withdrawals(
        amongNew deliveries: ArraySlice<OwedDelivery>
    ) async throws -> [DeliveryID: Withdrawal] {
        let ended = progress.endedDevices(among: deliveries.lazy.map(\.deviceSerial))
        guard !ended.isEmpty else { return [:] }
        return try await progress.withdrawals(
            among: deliveries.filter { ended.contains($0.deviceSerial) })
    }

    /// What becomes of a delivery that was not sent before; `nil` sends it.
    func firstEnding(
        of delivery: OwedDelivery, _ withdrawal: Withdrawal?, at now: Timestamp,
        in state: inout State
    ) -> Resolution? {
        switch decide(
            on: delivery, attempts: 0, reason: "", withdrawal, at: now, in: &state)
        {
        case .send: nil
        case .settle(let resolution): resolution
        case .wait(let halt):
            judge.waiting(
                delivery, attempts: 0, until: now, status: 0, reason: halt.reason, at: now)
        }
    }

    /// Decides whether a delivery is sent now.
    ///
    /// First what ends it whatever the gateway's state: it expired, its token is dead, it is
    /// withdrawn, a newer one takes its place. Then what it must wait for; its device's budget
    /// comes last, because only what is about to be sent may take a place in it.
    func decide(
        on delivery: OwedDelivery, attempts: UInt16, reason: String, _ withdrawal: Withdrawal?,
        at now: Timestamp, in state: inout State
    ) -> SendDecision {
        if let ending = finalEnding(of: delivery, attempts, reason, withdrawal, at: now, in: state)
        {
            return .settle(ending)
        }
        if let until = state.pacing.hold(on: delivery.delivery, at: now) {
            return .settle(
                judge.waiting(
                    delivery, attempts: attempts, until: until, status: 0,
                    reason: DevicePacing.holdReason, at: now))
        }
        if let halt = state.halts.halt(of: delivery.delivery, at: now) { return .wait(halt) }
        // What is new takes no trial's place from what waits, if it is likely to fail.
        if attempts == 0, reason.isEmpty, state.tokenBreaker.isSuspect(delivery),
            let halt = state.halts.topicHalt(of: delivery.delivery)
        {
            return .wait(halt)
        }
        if let until = state.pacing.reserve(delivery.delivery, waitingFor: reason, at: now) {
            return .settle(
                judge.waiting(
                    delivery, attempts: attempts, until: until, status: 0,
                    reason: DevicePacing.waitingReason, at: now))
        }
        state.halts.letThrough(delivery.delivery, at: now)
        return .send
    }

    private func finalEnding(
        of delivery: OwedDelivery, _ attempts: UInt16, _ reason: String,
        _ withdrawal: Withdrawal?, at now: Timestamp, in state: borrowing State
    ) -> Resolution? {
        if let ending = judge.ending(ofUnsent: delivery, attempts: attempts, reason, at: now) {
            return ending
        }
        if state.deadTokens.holds(delivery.delivery) {
            return unsent(delivery, attempts, "the device token is dead", .deadToken, now)
        }
        if let withdrawal {
            return unsent(delivery, attempts, withdrawal.rawValue, .withdrawn, now)
        }
        let hasWaited = attempts > 0 || !reason.isEmpty
        guard hasWaited, state.collapses.supersedes(delivery.delivery) else { return nil }
        return unsent(
            delivery, attempts, "superseded by a newer change of the record", .superseded, now)
    }

    private func unsent(
        _ delivery: OwedDelivery, _ attempts: UInt16, _ reason: String, _ ending: SettledEnding,
        _ now: Timestamp
    ) -> Resolution {
        Resolution(
            deadLetter: DeadLetter(
                delivery: delivery, attempts: attempts, status: 0, reason: reason, at: now),
            ending)
    }
}

extension DeliveryWorker.State {
    /// What is due, first what had better try where something is halted.
    func inOrderOfTrial(_ due: [Retry]) -> [Retry] {
        guard halts.count > 0 else { return due }
        let ranked = due.enumerated().map { ($0.offset, tokenBreaker.rank($0.element.delivery)) }
        return ranked.sorted { ($0.1, $0.0) < ($1.1, $1.0) }.map { due[$0.0] }
    }

    /// Settles a ticket, and counts what the delivery came to.
    mutating func settle(
        _ ticket: DeliveryTracker.Ticket, _ resolution: Resolution, of delivery: Delivery,
        at now: Timestamp
    ) {
        tracker.settle(ticket, resolution)
        tally.add(resolution.ending, of: delivery, at: now)
    }

    /// What is to be counted.
    mutating func takeTally() -> DeliveryMeter.Tally {
        guard !tally.isEmpty else { return tally }
        defer { tally = DeliveryMeter.Tally() }
        return tally
    }

    /// The pushes that ended since the last call.
    mutating func takeEnds() -> [PushEnd] {
        guard let taken = ends, !taken.isEmpty else { return [] }
        ends = []
        return taken
    }

    /// Remembers what an attempt showed about its delivery and its token.
    mutating func note(_ outcome: PushOutcome, of delivery: Delivery, _ resolution: Resolution) {
        if let dead = resolution.deadToken { deadTokens.insert(dead) }
        guard resolution.dueAt != nil, outcome.wasUnanswered else {
            unanswered.remove(delivery.id)
            return
        }
        unanswered.add(delivery.id)
    }
}

extension PushOutcome {
    /// Whether the attempt came to nothing through no judgement of the gateway's on the push: it
    /// was lost or not sent, or belongs on another connection.
    var wasUnanswered: Bool {
        switch self {
        case .accepted: false
        case .unknown, .notSent: true
        case .refused(let refusal):
            switch refusal.reaction {
            case .retryOnFreshConnection, .renewProviderToken: true
            default: false
            }
        }
    }
}
