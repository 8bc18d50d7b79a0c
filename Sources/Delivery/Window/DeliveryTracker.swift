import DequeModule
package import RelayModel
package import Storage

/// Decides how far the progress may move.
///
/// Deliveries are admitted in the order of the log and settle in any order. The progress may pass a
/// delivery only when that delivery and all before it are settled, and what is recorded with a step
/// is exactly what the step passes. So a crash repeats at most what was admitted and not yet passed
/// (the window), and nothing that was passed is ever repeated or lost.
///
/// Retries are beside the log: they are worked under tickets of their own and settle with the next
/// step, whether or not the progress moves.
///
/// - Invariant: `mark` is where the last recorded step ended; between ``takeStep()`` and
///   ``stepRecorded()`` one step is on its way and no other is taken. What is
///   admitted from the log and not yet passed never exceeds the window, and with what is adopted
///   and has no recorded end not two.
package struct DeliveryTracker: Sendable {
    /// Names one attempt that is open.
    package enum Ticket: Sendable, Hashable {
        /// The first attempt of a delivery of the log, by its number in the window.
        case log(UInt64)
        /// An attempt of a retry, by its number.
        case retry(UInt64)
        /// The first attempt of a delivery of a range, by the range's lane and its number there.
        case range(lane: UInt64, number: UInt64)
    }

    private struct FinishedEntry: Sendable {
        let position: LogPosition
        /// The number of the first delivery that is not of this entry or an earlier one.
        let end: UInt64
        var ranges: [NewRange]
        var badges: [BadgeHolder: Int64]
    }

    private struct InboxGroup: Sendable {
        let entries: [InboxEntry]
        /// The number of the first delivery that was admitted after these.
        let end: UInt64
    }

    /// The deliveries of ranges, beside the log's.
    var ranges: RangeLanes
    private let limit: Int
    private var mark: ProgressMark
    /// The deliveries of the log.
    private var window = SettlingWindow()
    private var finished: Deque<FinishedEntry> = []
    /// The gates of entries that are judged beside the log.
    private var gates: [LogPosition: UInt64] = [:]
    private var inboxes: Deque<InboxGroup> = []
    private var inboxEntries = 0
    /// What entries that the progress has not passed did to subscriptions.
    private var firings = WaitingFirings()
    private var lastAdmitted: DeliveryOrdinal?
    private var retries: [UInt64: Retry] = [:]
    /// Which retries must not be taken up again, whatever their rows say.
    private var busyRetries: Set<DeliveryID> = []
    /// Tickets of the log whose deliveries were adopted as retries while their answers were open.
    private var adopted: [Ticket: Ticket] = [:]
    /// How often deliveries were adopted, since the start.
    private(set) var adoptions: UInt64 = 0
    private var nextRetry: UInt64 = 0
    private var settledRetries: [Resolution] = []
    /// Retries whose end is settled and not yet durable: their rows still read as due.
    private var unrecordedRetries: [DeliveryID] = []
    private var retriesOnTheirWay: [DeliveryID] = []
    private var stepOnItsWay: SettledStep?
    /// Adopted deliveries among the unrecorded retries, and among those on their way.
    private var unrecordedAdopted = 0
    private var adoptedOnTheirWay = 0
    /// The deliveries of the log that the step on its way passes: until it is durable, a crash
    /// would repeat them.
    private var deliveriesOnTheirWay = 0

    /// Starts at the progress that was recorded last, with room for `window` open deliveries.
    ///
    /// `rangeWindow` is the room for deliveries of ranges.
    package init(mark: ProgressMark, window: Int, rangeWindow: Int = 512) {
        precondition(window > 0 && rangeWindow > 0)
        ranges = RangeLanes(window: rangeWindow)
        self.mark = mark
        limit = window
    }

    /// How many more deliveries may be admitted.
    ///
    /// Adopted deliveries have places of their own, as many again, so that one container's gateway
    /// that does not answer leaves room for the others; a gateway that answers nothing at all gets
    /// no more than two windows. They keep them until their end is durable.
    package var room: Int {
        let beside = adopted.count + unrecordedAdopted + adoptedOnTheirWay
        return max(0, limit - window.count - deliveriesOnTheirWay - max(0, beside - limit))
    }

    /// How many deliveries and retries are admitted and not yet passed.
    package var inFlight: Int {
        window.count + deliveriesOnTheirWay + retries.count + ranges.inFlight
    }

    /// The retries that must not be taken up again: they are being worked, or their end is not yet
    /// durable.
    package var retriesInFlight: Set<DeliveryID> { busyRetries }

    /// How many retries were taken up and have no recorded end: a crash would repeat them.
    ///
    /// Adopted deliveries do not count: they have their place in the window.
    package var openRetries: Int {
        let unrecorded = unrecordedRetries.count + retriesOnTheirWay.count
        return retries.count - adopted.count + unrecorded - unrecordedAdopted - adoptedOnTheirWay
    }

    /// Where the progress stands, as far as it is recorded.
    package var recordedMark: ProgressMark { mark }

    // MARK: Admitting

    /// Takes a delivery of the log into the window, and returns the ticket of its first attempt.
    ///
    /// There must be room, and ordinals must ascend.
    package mutating func admit(_ delivery: OwedDelivery, at now: Timestamp) -> Ticket {
        let ordinal = delivery.delivery.ordinal
        precondition(room > 0, "admitted beyond the window")
        precondition(lastAdmitted.map { $0 < ordinal } ?? true, "admitted out of order")
        precondition(mark.position < ordinal.position, "admitted what is settled")
        lastAdmitted = ordinal
        return .log(window.admit(delivery, since: now))
    }

    /// Learns that every delivery of every entry up to `position` has been admitted.
    ///
    /// `new` is what the entry owes besides, and `badges` what entries up to it set the numbers on
    /// icons to: written when the progress passes it.
    package mutating func finish(
        _ position: LogPosition, ranges new: [NewRange] = [],
        badges: [BadgeHolder: Int64] = [:]
    ) {
        if let last = finished.last {
            precondition(last.position < position, "finished out of order")
        } else if position <= mark.position {
            // Deliveries of the entry after it were admitted with it, and are passed already.
            precondition(position == mark.position && new.isEmpty, "finished what is settled")
            return
        }
        finished.append(
            FinishedEntry(position: position, end: window.end, ranges: new, badges: badges))
    }

    /// Learns that the next entry, at `position`, is judged beside the log: the progress stays
    /// before it until ``makeUp(_:)``, whatever follows it is admitted and settled.
    package mutating func putOff(_ position: LogPosition) {
        precondition(mark.position < position, "put off what is settled")
        gates[position] = window.shut()
        finish(position)
    }

    /// Learns what an entry owes that was put off, and what waited for it.
    package mutating func makeUp(_ change: MadeUpChange) {
        guard let gate = gates.removeValue(forKey: change.position),
            let index = finished.firstIndex(where: { $0.position == change.position })
        else { preconditionFailure("made up what was not put off") }
        finished[index].ranges = change.ranges
        finished[index].badges = change.badges
        window.open(gate: gate)
    }

    /// Takes what goes to inboxes beside the deliveries admitted next: it is recorded at the latest
    /// with the step that passes the first of them, so that none is passed without it.
    ///
    /// - Returns: `false`, and takes nothing, while too many wait.
    package mutating func add(_ entries: [InboxEntry]) -> Bool {
        guard !entries.isEmpty else { return true }
        guard inboxEntries < Limits.maximumInboxEntriesWaiting else { return false }
        inboxEntries += entries.count
        inboxes.append(InboxGroup(entries: entries, end: window.end))
        return true
    }

    /// Takes what entries did to subscriptions, before the deliveries of what comes after them are
    /// admitted: each is recorded with the very step that passes its entry.
    ///
    /// - Returns: `false`, and takes nothing, while too many wait.
    package mutating func add(firings notes: [FiringNote]) -> Bool { firings.add(notes) }

    /// Takes a retry that fell due, and returns the ticket of its next attempt.
    package mutating func admit(_ retry: Retry) -> Ticket {
        defer { nextRetry += 1 }
        retries[nextRetry] = retry
        busyRetries.insert(retry.delivery.delivery.id)
        return .retry(nextRetry)
    }

    // MARK: Settling

    /// The delivery behind an open ticket, with the attempts made before; `nil` if the ticket is
    /// not open, because it was settled or adopted as a retry before.
    package func openDelivery(_ ticket: Ticket) -> (delivery: OwedDelivery, attempts: UInt16)? {
        switch adopted[ticket] ?? ticket {
        case .log(let number): window.openDelivery(number).map { ($0, 0) }
        case .retry(let number): retries[number].map { ($0.delivery, $0.attempts) }
        case .range(let lane, let number): ranges.openDelivery(number, of: lane).map { ($0, 0) }
        }
    }

    /// Whether the delivery behind an open ticket waited because somebody wanted it to.
    func wasToWait(_ ticket: Ticket) -> Bool {
        guard case .retry(let number) = ticket else { return false }
        return retries[number]?.reason.isWanted ?? false
    }

    /// Settles an open ticket.
    ///
    /// A ticket that is not open is ignored: the gateway answered twice.
    package mutating func settle(_ ticket: Ticket, _ resolution: Resolution) {
        let asRetry = adopted.isEmpty ? nil : adopted.removeValue(forKey: ticket)
        if asRetry != nil { unrecordedAdopted += 1 }
        switch asRetry ?? ticket {
        case .log(let number): window.settle(number, resolution)
        case .range(let lane, let number): ranges.settle(number, of: lane, resolution)
        case .retry(let number):
            guard let retry = retries.removeValue(forKey: number) else { return }
            settledRetries.append(resolution)
            unrecordedRetries.append(retry.delivery.delivery.id)
        }
    }

    /// Whether the ticket is open, and that of a delivery of the log that no retry has adopted.
    package func isInWindow(_ ticket: Ticket) -> Bool {
        guard case .log(let number) = ticket else { return false }
        return window.isOpen(number)
    }

    // MARK: Recording

    /// The next step to record: everything settled that the progress may pass, and the settled
    /// retries.
    ///
    /// `nil` if there is nothing to record, or a step is on its way already.
    package mutating func takeStep() -> SettledStep? {
        guard stepOnItsWay == nil else { return nil }
        var step = SettledStep(from: mark, to: mark)
        deliveriesOnTheirWay = window.count
        let raised = passSettledDeliveries(into: &step)
        deliveriesOnTheirWay -= window.count
        passInboxes(into: &step)
        passFinishedEntries(into: &step, raised)
        step.firings += firings.pass(upTo: step.to.position)
        ranges.pass(into: &step)
        recordSettledRetries(in: &step)
        let isNews =
            !step.receipts.isEmpty || !step.rangeSteps.isEmpty || !step.inbox.isEmpty
            || !step.firings.isEmpty
        guard step.to != step.from || isNews else {
            return nil
        }
        stepOnItsWay = step
        return step
    }

    private mutating func recordSettledRetries(in step: inout SettledStep) {
        let hasAdopted = !step.retries.isEmpty
        for resolution in settledRetries {
            resolution.record(in: &step, origin: .retry)
        }
        settledRetries.removeAll(keepingCapacity: true)
        swap(&retriesOnTheirWay, &unrecordedRetries)
        swap(&adoptedOnTheirWay, &unrecordedAdopted)
        guard hasAdopted, !step.endedRetries.isEmpty else { return }
        // A delivery that was adopted and answered within one step needs no row: it would be
        // written after its end, and sent again.
        let ended = Set(step.endedRetries)
        step.retries.removeAll { ended.contains($0.delivery.delivery.id) }
    }

    /// - Returns: By which changes they have raised badges, of each the last.
    private mutating func passSettledDeliveries(
        into step: inout SettledStep
    ) -> [BadgeHolder: LogPosition] {
        var raised: [BadgeHolder: LogPosition] = [:]
        while let settled = window.passFirst() {
            settled.record(in: &step)
            let (position, offset) = (settled.ordinal.position, settled.ordinal.offset)
            if let badge = settled.badge { raised[badge.holder] = position }
            step.to = ProgressMark(
                position: LogPosition(position.rawValue - 1), offset: offset + 1)
        }
        return raised
    }

    private mutating func passInboxes(into step: inout SettledStep) {
        while let group = inboxes.first, group.end <= window.first {
            inboxes.removeFirst()
            inboxEntries -= group.entries.count
            step.inbox.append(contentsOf: group.entries)
        }
    }

    /// `raised` says by which changes deliveries that the step passes have raised badges: what was
    /// set before those is not what they count to.
    private mutating func passFinishedEntries(
        into step: inout SettledStep, _ raised: [BadgeHolder: LogPosition]
    ) {
        while let entry = finished.first, entry.end <= window.first {
            finished.removeFirst()
            step.newRanges += entry.ranges
            for (holder, badge) in entry.badges where raised[holder] ?? .start <= entry.position {
                step.badges[holder] = badge
            }
            // Deliveries of a later entry may have been passed already.
            step.to = max(step.to, ProgressMark(position: entry.position, offset: 0))
        }
    }

    /// Learns that the step taken last is durable.
    package mutating func stepRecorded() {
        guard let step = stepOnItsWay else {
            preconditionFailure("recorded a step that nobody took")
        }
        mark = step.to
        stepOnItsWay = nil
        deliveriesOnTheirWay = 0
        ranges.stepRecorded()
        busyRetries.subtract(retriesOnTheirWay)
        retriesOnTheirWay.removeAll(keepingCapacity: true)
        adoptedOnTheirWay = 0
    }

    /// Learns that the step taken last was not recorded, and returns it to be recorded again.
    ///
    /// `nil` if none is on its way.
    package var unrecordedStep: SettledStep? { stepOnItsWay }

    // MARK: Slow answers

    /// The clock goes `step` later than it did.
    mutating func clockWasSetBack(by step: Duration) {
        window.clockWasSetBack(by: step)
    }

    /// Turns the deliveries at the front of the window that are open since before `limit` into
    /// retries, so that one answer that does not come cannot hold back the progress of all behind.
    ///
    /// Their tickets stay open: the answer, when it comes, settles the retry, and until then nobody
    /// takes it up. After a crash it is due at once.
    ///
    /// - Returns: The lane of each that was turned.
    package mutating func adoptDeliveries(
        openSinceBefore limit: Timestamp, at now: Timestamp
    ) -> [RetryLane] {
        window.open(sinceBefore: limit).map { number, delivery in
            let ticket = Ticket.log(number)
            let retry = Retry(delivery: delivery, attempts: 1, dueAt: now, reason: .noAnswerYet)
            settle(ticket, Resolution(retry: retry, status: 0, at: now))
            // The attempt that is still open is the first; it is counted when it ends.
            var open = retry
            open.attempts = 0
            adopted[ticket] = admit(open)
            adoptions += 1
            return RetryLane(of: delivery.delivery)
        }
    }
}
