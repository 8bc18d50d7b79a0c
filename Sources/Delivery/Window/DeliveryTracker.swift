import DequeModule
package import RelayModel
package import Storage

/// Decides how far the progress may move.
///
/// Deliveries are admitted in the order of the log and settle in any order. The progress may pass a
/// delivery only when that delivery and all before it are settled. A step records exactly what it
/// passes. So a crash repeats at most what was admitted and not yet passed (the window), and
/// nothing that was passed is ever repeated or lost.
///
/// Retries are independent of the log: they have tickets of their own and settle with the next
/// step, whether or not the progress moves.
///
/// - Invariant: `mark` is where the last recorded step ended. Between ``takeStep()`` and
///   ``stepRecorded()`` one step is on its way and no other is taken. The deliveries of the log
///   that are admitted and not yet passed never exceed the window. Together with the adopted ones
///   without a recorded end, they never exceed two windows.
package struct DeliveryTracker: Sendable {
    /// Identifies one open attempt.
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
        /// The number of the first delivery that belongs to a later entry.
        let end: UInt64
        var ranges: [NewRange]
        var badges: [BadgeHolder: Int64]
    }

    private struct InboxGroup: Sendable {
        let entries: [InboxEntry]
        /// The number of the first delivery that was admitted after these entries.
        let end: UInt64
    }

    /// The deliveries of ranges.
    var ranges: RangeLanes
    private let limit: Int
    private var mark: ProgressMark
    /// The deliveries of the log.
    private var window = SettlingWindow()
    private var finished: Deque<FinishedEntry> = []
    /// The gates of put-off entries, which are judged beside the log.
    private var gates: [LogPosition: UInt64] = [:]
    private var inboxes: Deque<InboxGroup> = []
    private var inboxEntries = 0
    /// The firings of entries that the progress has not passed.
    private var firings = WaitingFirings()
    private var lastAdmitted: DeliveryOrdinal?
    private var retries: [UInt64: Retry] = [:]
    /// The retries that must not be taken up again, whatever their rows say.
    private var busyRetries: Set<DeliveryID> = []
    /// For each ticket of the log whose delivery was adopted as a retry while its answer was open,
    /// the ticket of that retry.
    private var adopted: [Ticket: Ticket] = [:]
    /// The number of adoptions since the start.
    private(set) var adoptions: UInt64 = 0
    private var nextRetry: UInt64 = 0
    private var settledRetries: [Resolution] = []
    /// The retries whose end is settled and not yet durable.
    ///
    /// Their rows still read as due.
    private var unrecordedRetries: [DeliveryID] = []
    private var retriesOnTheirWay: [DeliveryID] = []
    private var stepOnItsWay: SettledStep?
    /// The numbers of adopted deliveries among the unrecorded retries, and among those on their
    /// way.
    private var unrecordedAdopted = 0
    private var adoptedOnTheirWay = 0
    /// The number of deliveries of the log that the step on its way passes.
    ///
    /// Until it is durable, a crash would repeat them.
    private var deliveriesOnTheirWay = 0

    /// Creates a tracker that starts at the last recorded progress, with room for `window` open
    /// deliveries.
    ///
    /// `rangeWindow` is the room for deliveries of ranges.
    package init(mark: ProgressMark, window: Int, rangeWindow: Int = 512) {
        precondition(window > 0 && rangeWindow > 0)
        ranges = RangeLanes(window: rangeWindow)
        self.mark = mark
        limit = window
    }

    /// The number of deliveries for which there is room.
    ///
    /// Adopted deliveries have places of their own, as many as the window. So if the gateway of one
    /// container does not answer, there is still room for the others. A gateway that answers
    /// nothing at all gets at most two windows. Adopted deliveries keep their places until their
    /// end is durable.
    package var room: Int {
        let beside = adopted.count + unrecordedAdopted + adoptedOnTheirWay
        return max(0, limit - window.count - deliveriesOnTheirWay - max(0, beside - limit))
    }

    /// The number of deliveries and retries that are admitted and not yet passed.
    package var inFlight: Int {
        window.count + deliveriesOnTheirWay + retries.count + ranges.inFlight
    }

    /// The retries that must not be taken up again: they are being worked, or their end is not yet
    /// durable.
    package var retriesInFlight: Set<DeliveryID> { busyRetries }

    /// The number of retries that were taken up and have no recorded end, which a crash would
    /// repeat.
    ///
    /// Adopted deliveries do not count, because they have their place in the window.
    package var openRetries: Int {
        let unrecorded = unrecordedRetries.count + retriesOnTheirWay.count
        return retries.count - adopted.count + unrecorded - unrecordedAdopted - adoptedOnTheirWay
    }

    /// The progress, as recorded.
    package var recordedMark: ProgressMark { mark }

    // MARK: Admitting

    /// Admits a delivery of the log to the window, and returns the ticket of its first attempt.
    ///
    /// There must be room, and ordinals must ascend.
    package mutating func admit(_ delivery: OwedDelivery, at now: Timestamp) -> Ticket {
        let ordinal = delivery.delivery.ordinal
        precondition(room > 0, "admitted beyond the window")
        precondition(lastAdmitted.map { $0 < ordinal } ?? true, "admitted out of order")
        precondition(mark.position < ordinal.position, "admitted a settled delivery")
        lastAdmitted = ordinal
        return .log(window.admit(delivery, since: now))
    }

    /// Notes that every delivery of every entry up to `position` was admitted.
    ///
    /// `new` are the ranges of the entry, and `badges` the badges that entries up to it set. They
    /// are written when the progress passes the entry.
    package mutating func finish(
        _ position: LogPosition, ranges new: [NewRange] = [],
        badges: [BadgeHolder: Int64] = [:]
    ) {
        if let last = finished.last {
            precondition(last.position < position, "finished out of order")
        } else if position <= mark.position {
            // Deliveries of the entry after it were admitted with it, and are already passed.
            precondition(position == mark.position && new.isEmpty, "finished a settled entry")
            return
        }
        finished.append(
            FinishedEntry(position: position, end: window.end, ranges: new, badges: badges))
    }

    /// Notes that the next entry, at `position`, is judged beside the log.
    ///
    /// Until ``makeUp(_:)`` the progress stays before it, whatever is admitted and settled after
    /// it.
    package mutating func putOff(_ position: LogPosition) {
        precondition(mark.position < position, "put off a settled entry")
        gates[position] = window.shut()
        finish(position)
    }

    /// Adds what a put-off entry and the edits that waited for it owe, and lets the progress pass.
    package mutating func makeUp(_ change: MadeUpChange) {
        guard let gate = gates.removeValue(forKey: change.position),
            let index = finished.firstIndex(where: { $0.position == change.position })
        else { preconditionFailure("made up an entry that was not put off") }
        finished[index].ranges = change.ranges
        finished[index].badges = change.badges
        window.open(gate: gate)
    }

    /// Adds inbox entries that belong to the next deliveries.
    ///
    /// They are recorded at the latest with the step that passes the first of these deliveries, so
    /// that none is passed without them.
    ///
    /// - Returns: `false`, and takes nothing, while too many wait.
    package mutating func add(_ entries: [InboxEntry]) -> Bool {
        guard !entries.isEmpty else { return true }
        guard inboxEntries < Limits.maximumInboxEntriesWaiting else { return false }
        inboxEntries += entries.count
        inboxes.append(InboxGroup(entries: entries, end: window.end))
        return true
    }

    /// Adds firings of entries, before the deliveries of later entries are admitted.
    ///
    /// Each is recorded with the step that passes its entry.
    ///
    /// - Returns: `false`, and takes nothing, while too many wait.
    package mutating func add(firings notes: [FiringNote]) -> Bool { firings.add(notes) }

    /// Admits a retry that is due, and returns the ticket of its next attempt.
    package mutating func admit(_ retry: Retry) -> Ticket {
        defer { nextRetry += 1 }
        retries[nextRetry] = retry
        busyRetries.insert(retry.delivery.delivery.id)
        return .retry(nextRetry)
    }

    // MARK: Settling

    /// Returns the delivery of an open ticket, with the number of attempts made before.
    ///
    /// Returns `nil` if the ticket is not open, because it was already settled.
    package func openDelivery(_ ticket: Ticket) -> (delivery: OwedDelivery, attempts: UInt16)? {
        switch adopted[ticket] ?? ticket {
        case .log(let number): window.openDelivery(number).map { ($0, 0) }
        case .retry(let number): retries[number].map { ($0.delivery, $0.attempts) }
        case .range(let lane, let number): ranges.openDelivery(number, of: lane).map { ($0, 0) }
        }
    }

    /// Returns whether the delivery of an open ticket waited because its recipient, the pacing or a
    /// redrive wanted it to.
    func wasToWait(_ ticket: Ticket) -> Bool {
        guard case .retry(let number) = ticket else { return false }
        return retries[number]?.reason.isWanted ?? false
    }

    /// Settles an open ticket.
    ///
    /// A ticket that is not open is ignored, because the gateway answered twice.
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

    /// Returns whether the ticket is open and belongs to a delivery of the log that was not adopted
    /// as a retry.
    package func isInWindow(_ ticket: Ticket) -> Bool {
        guard case .log(let number) = ticket else { return false }
        return window.isOpen(number)
    }

    // MARK: Recording

    /// Returns the next step to record: all settled deliveries that the progress may pass, and the
    /// settled retries.
    ///
    /// Returns `nil` if there is nothing to record, or if a step is already on its way.
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
        // A delivery that was adopted and answered within one step needs no row. The row would be
        // written after its end, and sent again.
        let ended = Set(step.endedRetries)
        step.retries.removeAll { ended.contains($0.delivery.delivery.id) }
    }

    /// - Returns: For each badge that they raised, the position of the last change that did.
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

    /// Passes finished entries.
    ///
    /// `raised` says which changes raised badges in this step. A badge that was set before such a
    /// change is not written, because the raised one replaces it.
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

    /// Notes that the last step is durable.
    package mutating func stepRecorded() {
        guard let step = stepOnItsWay else {
            preconditionFailure("recorded a step that was not taken")
        }
        mark = step.to
        stepOnItsWay = nil
        deliveriesOnTheirWay = 0
        ranges.stepRecorded()
        busyRetries.subtract(retriesOnTheirWay)
        retriesOnTheirWay.removeAll(keepingCapacity: true)
        adoptedOnTheirWay = 0
    }

    /// The step that was taken last and not recorded, to be recorded again, or `nil` if none is on
    /// its way.
    package var unrecordedStep: SettledStep? { stepOnItsWay }

    // MARK: Slow answers

    /// Moves all times back by `step`, by which the clock was set back.
    mutating func clockWasSetBack(by step: Duration) {
        window.clockWasSetBack(by: step)
    }

    /// Turns the deliveries at the front of the window that have been open since before `limit`
    /// into retries, so that one missing answer cannot hold back the progress of all deliveries
    /// behind it.
    ///
    /// Their tickets stay open. The answer settles the retry when it comes, and until then the
    /// retry is not taken up. After a crash it is due at once.
    ///
    /// - Returns: The lane of each adopted delivery.
    package mutating func adoptDeliveries(
        openSinceBefore limit: Timestamp, at now: Timestamp
    ) -> [RetryLane] {
        window.open(sinceBefore: limit).map { number, delivery in
            let ticket = Ticket.log(number)
            let retry = Retry(delivery: delivery, attempts: 1, dueAt: now, reason: .noAnswerYet)
            settle(ticket, Resolution(retry: retry, status: 0, at: now))
            // The open attempt is the first. It is counted when it ends.
            var open = retry
            open.attempts = 0
            adopted[ticket] = admit(open)
            adoptions += 1
            return RetryLane(of: delivery.delivery)
        }
    }
}
