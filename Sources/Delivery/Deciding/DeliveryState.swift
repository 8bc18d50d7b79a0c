import Gateway
import RelayModel
import Storage

/// The open deliveries, and what the answers so far say about the rest.
///
/// It decides what is sent, what each answer means for its delivery, and what is recorded.
///
/// A value without lock, clock or suspension. Its owner performs the returned actions in order,
/// after releasing the lock.
struct DeliveryState: ~Copyable, Sendable {
    let settings: DeliverySettings
    private(set) var tracker: DeliveryTracker
    private(set) var rules: SendRules
    private var tickets = OpenTickets()
    private var rangePace: PushPace
    private var alarms = GatewayAlarms()
    private(set) var answers = ContainerAnswers()
    private var clock = ClockWatch()
    /// Pushes of the log that ended and were not reported yet, if they are reported.
    private var ends: [PushEnd]?
    /// The counts that are not in the metrics yet.
    private var tally = DeliveryMeter.Tally()
    /// The counts since the start.
    private(set) var totals = DeliveryTotals()
    /// The answers that were not reported yet, while there is an observer.
    private var answered: [AnsweredAttempt]?
    private var settledSinceStep = 0

    /// Creates a state that goes on at `mark`.
    ///
    /// `tellsEnds` says whether begun and ended pushes are reported.
    init(
        mark: ProgressMark, settings: DeliverySettings, judge: OutcomeJudge,
        generator: any RandomNumberGenerator & Sendable, tellsEnds: Bool,
        presence: (any DevicePresence)? = nil
    ) {
        self.settings = settings
        tracker = DeliveryTracker(
            mark: mark, window: settings.window, rangeWindow: settings.rangeWindow)
        rules = SendRules(
            judge: judge, silentPushesPerHour: settings.silentPushesPerHour, generator: generator,
            presence: presence)
        rangePace = PushPace(most: settings.rangeWindow)
        ends = tellsEnds ? [] : nil
    }

    // MARK: What the log owes

    /// The number of deliveries of the log for which there is room.
    var room: Int { tracker.room }

    /// Admits as many of `deliveries` as there is room for, `most` at most.
    ///
    /// - Parameters:
    ///   - deliveries: The next deliveries that the log owes, in its order.
    ///   - most: The number of first deliveries that `withdrawn` covers.
    ///   - withdrawn: The deliveries that no longer belong to their recipients.
    ///   - isHeard: Whether there is an observer of each delivery.
    ///   - now: The time.
    /// - Returns: The number that were taken, the actions that follow, and the requests to send.
    mutating func admit(
        _ deliveries: ArraySlice<OwedDelivery>, atMost most: Int,
        withdrawn: [DeliveryID: Withdrawal], isHeard: Bool = false, at now: Timestamp
    ) -> Admission {
        answered = isHeard ? [] : nil
        var admission = Admission(taken: min(most, room, deliveries.count))
        admission.requests.reserveCapacity(admission.taken)
        for delivery in deliveries.prefix(admission.taken) {
            let ticket = tracker.admit(delivery, at: now)
            let withdrawal = withdrawn.isEmpty ? nil : withdrawn[delivery.delivery.id]
            begin(delivery, ticket, withdrawal, at: now, into: &admission)
        }
        finish(&admission)
        if ends != nil, !admission.requests.isEmpty {
            admission.actions.append(.began(admission.requests))
        }
        return admission
    }

    /// Takes the inbox entries of the next deliveries, or returns `nil` while too many wait.
    mutating func add(_ inbox: [InboxEntry]) -> [DeliveryAction]? {
        guard tracker.add(inbox) else { return nil }
        return inbox.isEmpty ? [] : [.wake(.steps)]
    }

    /// Takes the firings of entries, or returns `false` while too many wait.
    mutating func add(firings: [FiringNote]) -> Bool { tracker.add(firings: firings) }

    /// Notes that every delivery of every entry up to `position` was admitted.
    mutating func finish(
        _ position: LogPosition, ranges: [NewRange], badges: [BadgeHolder: Int64]
    ) -> [DeliveryAction] {
        tracker.finish(position, ranges: ranges, badges: badges)
        return [.wake(.steps)]
    }

    /// Notes that the next entry is judged beside the log.
    mutating func putOff(_ position: LogPosition) { tracker.putOff(position) }

    /// Adds what a put-off entry owes.
    mutating func makeUp(_ change: MadeUpChange) -> [DeliveryAction] {
        tracker.makeUp(change)
        return [.wake(.steps)]
    }

    // MARK: What ranges owe

    /// The number of deliveries of ranges for which there is room, in their window and in their
    /// pace.
    var rangeRoom: Int { min(tracker.rangeRoom, rangePace.room) }

    /// Admits as many deliveries of a range as there is room for, `most` at most.
    mutating func admit(
        _ deliveries: ArraySlice<OwedDelivery>, of range: RangeBatch, atMost most: Int,
        withdrawn: [DeliveryID: Withdrawal], isHeard: Bool = false, at now: Timestamp
    ) -> Admission {
        answered = isHeard ? [] : nil
        var admission = Admission(taken: min(most, rangeRoom, deliveries.count))
        for delivery in deliveries.prefix(admission.taken) {
            let ticket = tracker.admit(delivery, range: range.id, offset: range.offset)
            let withdrawal = withdrawn.isEmpty ? nil : withdrawn[delivery.delivery.id]
            begin(delivery, ticket, withdrawal, at: now, into: &admission)
        }
        rangePace.begin(admission.requests.count)
        finish(&admission)
        return admission
    }

    /// Notes that every delivery of a range was admitted.
    mutating func finishRange(_ range: RangeBatch) -> [DeliveryAction] {
        tracker.finishRange(range.id, offset: range.offset, firing: range.firing)
        return [.wake(.steps)]
    }

    // MARK: Retries

    /// Returns which retries may be read at `now`.
    func retryLook(at now: Timestamp) -> RetryLook {
        RetryLook(
            excluded: tracker.retriesInFlight,
            room: max(0, settings.retryWindow - tracker.openRetries),
            held: rules.halts.held(at: now), nextTrial: rules.halts.nextTrial(after: now),
            adoptions: tracker.adoptions)
    }

    /// Notes that the registry is about to be asked about what waits.
    mutating func registryIsAsked() { rules.registryIsAsked() }

    /// Takes up due retries, except those whose lanes wait: their rows stay as they are.
    ///
    /// The answer of a delivery adopted since `look` is open or has come, so it is not taken up
    /// before the next look.
    mutating func admit(
        due: [Retry], readAfter look: RetryLook? = nil, withdrawn: [DeliveryID: Withdrawal],
        isHeard: Bool = false, at now: Timestamp
    ) -> Admission {
        answered = isHeard ? [] : nil
        var admission = Admission()
        let isLate = look.map { $0.adoptions != tracker.adoptions } ?? false
        for retry in rules.inOrderOfTrial(due) where !(isLate && retry.reason == .noAnswerYet) {
            let owed = retry.delivery
            let decision = rules.decide(
                on: owed, .waited(attempts: retry.attempts, retry.reason, dueAt: retry.dueAt),
                withdrawn[owed.delivery.id], at: now)
            if case .wait = decision { continue }
            let ticket = tracker.admit(retry)
            admission.taken += 1
            if case .settle(let ending) = decision {
                settleUnsent(ticket, ending, of: owed, at: now)
            } else {
                let number = tickets.open(ticket)
                rules.noteSending(of: owed.delivery, as: ticket)
                admission.requests.append(PushRequest(owed, ticket: number))
            }
        }
        finish(&admission)
        return admission
    }

    /// Remembers the deliveries that wait since before the start, for superseding older ones.
    mutating func recall(_ waiting: [Retry]) {
        for retry in waiting { rules.remember(retry.delivery.delivery) }
    }

    /// Returns the subscriptions and devices of `deliveries` whose throttle places must be learned
    /// before these are admitted.
    mutating func unknownLines(among deliveries: some Sequence<OwedDelivery>) -> Set<ThrottledLine>
    {
        rules.unknownLines(among: deliveries)
    }

    /// Learns the durable places that throttles gave.
    mutating func learn(_ pasts: [ThrottlePast], at now: Timestamp) {
        rules.learn(pasts, at: now)
    }

    // MARK: Admitting

    /// Sends a delivery that was just admitted, or settles it at once.
    private mutating func begin(
        _ owed: OwedDelivery, _ ticket: DeliveryTracker.Ticket, _ withdrawal: Withdrawal?,
        at now: Timestamp, into admission: inout Admission
    ) {
        rules.remember(owed.delivery)
        if let ending = rules.firstEnding(of: owed, withdrawal, at: now) {
            settleUnsent(ticket, ending, of: owed, at: now)
        } else {
            rules.noteSending(of: owed.delivery, as: ticket)
            admission.requests.append(
                PushRequest(owed, ticket: tickets.open(ticket)))
        }
    }

    /// Settles a delivery that is not sent now, or never, and reports why.
    private mutating func settleUnsent(
        _ ticket: DeliveryTracker.Ticket, _ resolution: Resolution, of owed: OwedDelivery,
        at now: Timestamp
    ) {
        answered?.append(AnsweredAttempt(unsent: resolution, of: owed.delivery, at: now))
        settle(ticket, resolution, of: owed, at: now)
    }

    private mutating func finish(_ admission: inout Admission) {
        if let answered, !answered.isEmpty { admission.actions.append(.tellAnswers(answered)) }
        answered = nil
        countRest(into: &admission.actions)
        if admission.requests.count < admission.taken {
            admission.actions.append(.wake(.steps))
        }
    }

    /// Settles a ticket, and counts how the delivery ended.
    private mutating func settle(
        _ ticket: DeliveryTracker.Ticket, _ resolution: Resolution, of owed: OwedDelivery,
        at now: Timestamp
    ) {
        var resolution = resolution
        resolution.place = rules.unrecordedPlace(of: owed)
        tally.add(resolution, of: owed.delivery, wasToWait: tracker.wasToWait(ticket), at: now)
        tracker.settle(ticket, resolution)
    }

    private mutating func countRest(into actions: inout [DeliveryAction]) {
        guard !tally.isEmpty else { return }
        totals.add(tally)
        actions.append(.count(tally))
        tally = DeliveryMeter.Tally()
    }

    // MARK: Answers

    /// Settles the gateway's answers, and ignores a second answer to the same ticket.
    ///
    /// `isHeard` says whether there is an observer of each answer.
    mutating func take(
        _ completions: [PushCompletion], isHeard: Bool = false, at now: Timestamp
    ) -> [DeliveryAction] {
        answered = isHeard ? [] : nil
        var news = HaltNews()
        var told: [GatewayAlarms.Alarm] = []
        var hasRangeRoom = false
        for completion in completions {
            guard let ticket = tickets.close(completion.ticket) else { continue }
            if case .range = ticket {
                rangePace.end(after: completion.latency)
                hasRangeRoom = true
            }
            if let alarm = settle(ticket, completion, at: now, news: &news) { told.append(alarm) }
        }
        settledSinceStep += completions.count
        var actions: [DeliveryAction] = []
        if let ends, !ends.isEmpty {
            actions.append(.ended(ends))
            self.ends = []
        }
        if hasRangeRoom { actions.append(.wake(.ranges)) }
        if let answered, !answered.isEmpty { actions.append(.tellAnswers(answered)) }
        answered = nil
        // Counted first, so that a delivery that the progress has passed is always in the metrics.
        countRest(into: &actions)
        actions.append(.wake(.steps))
        return actions + news.actions(halts: rules.halts.count, told)
    }

    /// Settles one answer, and returns the alarm to report, if there is one.
    private mutating func settle(
        _ ticket: DeliveryTracker.Ticket, _ completion: PushCompletion, at now: Timestamp,
        news: inout HaltNews
    ) -> GatewayAlarms.Alarm? {
        guard let (owed, attempts) = tracker.openDelivery(ticket) else { return nil }
        let delivery = owed.delivery
        if tracker.isInWindow(ticket) {
            ends?.append(PushEnd(container: delivery.container, latency: completion.latency))
        }
        let judgement = rules.judge(
            completion, of: owed, attempts: attempts, at: now, news: &news)
        tally.add(judgement.outcome, of: delivery)
        // A push that never got to a connection has no latency.
        if completion.latency > .zero { totals.add(latency: completion.latency) }
        answered?.append(
            AnsweredAttempt(
                judgement.outcome, judgement.resolution, of: delivery, attempts: attempts,
                latency: completion.latency, at: now))
        if !judgement.outcome.isForRegistration {
            answers.note(judgement.outcome, of: delivery, at: now)
        }
        settle(ticket, judgement.resolution, of: owed, at: now)
        return alarms.note(judgement.outcome, of: delivery, at: now)
    }

    /// Turns deliveries with slow answers into retries, so that the progress can pass them, and
    /// checks gateways that fail.
    mutating func adopt(at now: Timestamp) -> [DeliveryAction] {
        let opened = now.advanced(by: .zero - settings.slowAfter)
        var news = HaltNews()
        rules.look(at: now, news: &news)
        let lanes = tracker.adoptDeliveries(openSinceBefore: opened, at: now)
        for lane in lanes { rules.noteSilence(in: lane, since: opened, at: now, news: &news) }
        var actions = news.actions(halts: rules.halts.count)
        guard !lanes.isEmpty else { return actions }
        if ends != nil {
            actions.append(
                .ended(lanes.map { PushEnd(container: $0.container, latency: .zero) }))
        }
        tally.add(lanes.count, .adopted)
        countRest(into: &actions)
        actions.append(.wake(.steps))
        return actions
    }

    // MARK: Steps

    /// Returns the next step to record, or `nil` if there is none; one that was not recorded comes
    /// again.
    mutating func nextStep() -> SettledStep? {
        settledSinceStep = 0
        return tracker.unrecordedStep ?? tracker.takeStep()
    }

    /// Whether so much is settled since the last step that the next one need not wait.
    var hasFullStep: Bool { settledSinceStep >= settings.stepSize }

    /// Notes that the last step is durable.
    mutating func stepRecorded(_ step: SettledStep) -> [DeliveryAction] {
        tracker.stepRecorded()
        if !step.places.isEmpty { rules.recorded(step.places) }
        if !step.deadTokens.isEmpty { rules.recorded(step.deadTokens) }
        var actions: [DeliveryAction] = [
            .showProgress(tracker.recordedMark, inFlight: tracker.inFlight), .wake(.log),
            .wake(.ranges),
        ]
        // New rows may be due, and rows that ended make room for others.
        if !step.retries.isEmpty || !step.endedRetries.isEmpty {
            actions.append(.wake(.retries))
        }
        return actions
    }

    // MARK: By hand, and by the clock

    /// Lets a container's deliveries go again, and returns how many halts ended.
    mutating func resume(_ container: ContainerKey) -> (ended: Int, actions: [DeliveryAction]) {
        let ended = rules.resume(container)
        return (ended, [.showHalts(rules.halts.count), .wake(.retries)])
    }

    /// Ends a halt for which nothing waits any more.
    mutating func end(untried halt: Halts.Key, at now: Timestamp) -> [DeliveryAction] {
        var news = HaltNews()
        rules.end(untried: halt, at: now, news: &news)
        return news.actions(halts: rules.halts.count)
    }

    /// Notes the time; returns how far the clock was set back, if it was, after moving all times
    /// kept here by as much.
    mutating func note(_ now: Timestamp) -> Duration? {
        guard let step = clock.note(now) else { return nil }
        tracker.clockWasSetBack(by: step)
        rules.clockWasSetBack(by: step)
        alarms.clockWasSetBack(by: step)
        answers.clockWasSetBack(by: step)
        return step
    }
}

extension PushRequest {
    init(_ owed: OwedDelivery, ticket: UInt64) {
        let delivery = owed.delivery
        self.init(
            ticket: ticket, deliveryID: delivery.id, container: delivery.container,
            environment: delivery.gatewayEnvironment, token: delivery.token,
            notification: delivery.notification)
        gateway = delivery.gateway
        recipient = PushRecipient(
            owner: delivery.owner, deviceID: delivery.deviceID, position: delivery.ordinal.position)
        registration = JudgedRegistration(serial: owed.deviceSerial)
    }
}
