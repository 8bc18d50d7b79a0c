import Gateway
import RelayModel
import Storage

/// What is open, and what the answers so far say about the rest: it decides what is sent, what
/// becomes of each answer, and what is recorded.
///
/// A value without lock, clock or suspension. Whoever holds it does what its actions say, in their
/// order, and after it let go of the lock.
struct DeliveryState: ~Copyable, Sendable {
    let settings: DeliverySettings
    private(set) var tracker: DeliveryTracker
    private(set) var rules: SendRules
    private var tickets = OpenTickets()
    private var rangePace: PushPace
    private var alarms = GatewayAlarms()
    private(set) var answers = ContainerAnswers()
    private var clock = ClockWatch()
    /// Pushes of the log that ended and were not told yet, if anybody is to be told.
    private var ends: [PushEnd]?
    /// What is not yet counted.
    private var tally = DeliveryMeter.Tally()
    /// What was counted since the start.
    private(set) var totals = DeliveryTotals()
    /// What was answered and not told yet, while somebody listens.
    private var answered: [AnsweredAttempt]?
    private var settledSinceStep = 0

    /// Goes on at `mark`.
    ///
    /// `tellsEnds` says whether somebody hears of pushes that begin and end.
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

    /// How many more deliveries of the log may be admitted.
    var room: Int { tracker.room }

    /// Admits as many of `deliveries` as there is room for, `most` at most.
    ///
    /// - Parameters:
    ///   - deliveries: What the log owes next, in its order.
    ///   - most: For how many retries it was asked which are withdrawn.
    ///   - withdrawn: Those that are not their recipients' any more.
    ///   - isHeard: Whether somebody listens to what becomes of each.
    ///   - now: The moment.
    /// - Returns: How many were taken, what follows from it, and what is sent.
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

    /// Takes what goes to inboxes beside what is admitted next; `nil` while too many wait.
    mutating func add(_ inbox: [InboxEntry]) -> [DeliveryAction]? {
        guard tracker.add(inbox) else { return nil }
        return inbox.isEmpty ? [] : [.wake(.steps)]
    }

    /// Takes what entries did to subscriptions; `false` while too many wait.
    mutating func add(firings: [FiringNote]) -> Bool { tracker.add(firings: firings) }

    /// Learns that every delivery of every entry up to `position` has been admitted.
    mutating func finish(
        _ position: LogPosition, ranges: [NewRange], badges: [BadgeHolder: Int64]
    ) -> [DeliveryAction] {
        tracker.finish(position, ranges: ranges, badges: badges)
        return [.wake(.steps)]
    }

    /// Learns that the next entry is judged beside the log.
    mutating func putOff(_ position: LogPosition) { tracker.putOff(position) }

    /// Learns what an entry owes that was put off.
    mutating func makeUp(_ change: MadeUpChange) -> [DeliveryAction] {
        tracker.makeUp(change)
        return [.wake(.steps)]
    }

    // MARK: What ranges owe

    /// How many more deliveries of ranges may be admitted: as many as their window and their pace
    /// allow.
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

    /// Learns that every delivery of a range has been admitted.
    mutating func finishRange(_ range: RangeBatch) -> [DeliveryAction] {
        tracker.finishRange(range.id, offset: range.offset, firing: range.firing)
        return [.wake(.steps)]
    }

    // MARK: Retries

    /// Which retries may be read at `now`.
    func retryLook(at now: Timestamp) -> RetryLook {
        RetryLook(
            excluded: tracker.retriesInFlight,
            room: max(0, settings.retryWindow - tracker.openRetries),
            held: rules.halts.held(at: now), nextTrial: rules.halts.nextTrial(after: now),
            adoptions: tracker.adoptions)
    }

    /// Learns that the registry is about to be asked about what waits.
    mutating func registryIsAsked() { rules.registryIsAsked() }

    /// Takes up retries that are due, except those whose lanes wait: their rows stay as they are.
    ///
    /// Of what was adopted since `look` the answer is open, or has come: it is looked for again.
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
                on: owed, .waited(attempts: retry.attempts, retry.reason),
                withdrawn[owed.delivery.id], at: now)
            if case .wait = decision { continue }
            let ticket = tracker.admit(retry)
            admission.taken += 1
            if case .settle(let ending) = decision {
                settleUnsent(ticket, ending, of: owed, at: now)
            } else {
                let number = tickets.open(ticket)
                admission.requests.append(PushRequest(owed, ticket: number))
            }
        }
        finish(&admission)
        return admission
    }

    /// Learns of what waits from before the start: it knows of what is newer than it.
    mutating func recall(_ waiting: [Retry]) {
        for retry in waiting { rules.remember(retry.delivery.delivery) }
    }

    /// The subscriptions and devices of `deliveries` of which it must learn what their throttles
    /// have let go, before those are admitted.
    mutating func unknownLines(among deliveries: some Sequence<OwedDelivery>) -> Set<ThrottledLine>
    {
        rules.unknownLines(among: deliveries)
    }

    /// Learns what throttles have let go, as far as that is durable.
    mutating func learn(_ pasts: [ThrottlePast], at now: Timestamp) {
        rules.learn(pasts, at: now)
    }

    // MARK: Admitting

    /// Sends what was just admitted, or settles it at once.
    private mutating func begin(
        _ owed: OwedDelivery, _ ticket: DeliveryTracker.Ticket, _ withdrawal: Withdrawal?,
        at now: Timestamp, into admission: inout Admission
    ) {
        rules.remember(owed.delivery)
        if let ending = rules.firstEnding(of: owed, withdrawal, at: now) {
            settleUnsent(ticket, ending, of: owed, at: now)
        } else {
            admission.requests.append(
                PushRequest(owed, ticket: tickets.open(ticket)))
        }
    }

    /// Settles what is not sent, or not yet, and tells whoever listens why.
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

    /// Settles a ticket, and counts what the delivery came to.
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

    /// Settles what the gateway answered; a ticket that it answers twice is ignored.
    ///
    /// `isHeard` says whether somebody listens to each answer.
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
        // Counted first: whoever sees the progress pass a delivery finds it in the metrics.
        countRest(into: &actions)
        actions.append(.wake(.steps))
        return actions + news.actions(halts: rules.halts.count, told)
    }

    /// Settles one answer; returns what is to be told of it, if anything is.
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
        // What never got to a connection was not answered by anybody.
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

    /// Makes retries of deliveries whose answers are slow, so that the progress can pass them, and
    /// looks at gateways that fail.
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

    /// The next step to record: one that was not recorded comes again; `nil` if there is nothing.
    mutating func nextStep() -> SettledStep? {
        settledSinceStep = 0
        return tracker.unrecordedStep ?? tracker.takeStep()
    }

    /// Whether so much is settled since the last step that the next need not wait.
    var hasFullStep: Bool { settledSinceStep >= settings.stepSize }

    /// Learns that the step taken last is durable.
    mutating func stepRecorded(_ step: SettledStep) -> [DeliveryAction] {
        tracker.stepRecorded()
        if !step.places.isEmpty { rules.recorded(step.places) }
        if !step.deadTokens.isEmpty { rules.recorded(step.deadTokens) }
        var actions: [DeliveryAction] = [
            .showProgress(tracker.recordedMark, inFlight: tracker.inFlight), .wake(.log),
            .wake(.ranges),
        ]
        // New rows may be due; and those that ended make room for others.
        if !step.retries.isEmpty || !step.endedRetries.isEmpty {
            actions.append(.wake(.retries))
        }
        return actions
    }

    // MARK: By hand, and by the clock

    /// Lets a container's deliveries go again; returns how many halts ended.
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

    /// Notes what the clock says; returns how far it was set back, if it was.
    ///
    /// Every moment that is kept here has moved with it then.
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
