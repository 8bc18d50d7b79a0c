import Gateway
import RelayModel
import Storage

/// The decision on a delivery when its turn comes.
enum SendDecision {
    /// The delivery is sent.
    case send
    /// The delivery is not sent now, or never.
    case settle(Resolution)
    /// The delivery waits with all others of its lane.
    case wait(OutcomeJudge.Halt)
}

/// The history of a delivery when its turn comes.
enum DeliveryPast {
    /// The delivery was never sent, and never waited.
    case new
    /// The delivery was kept as a retry that was due at the moment.
    case waited(attempts: UInt16, WaitReason, dueAt: Timestamp)

    /// The number of used attempts.
    var attempts: UInt16 {
        guard case .waited(let attempts, _, _) = self else { return 0 }
        return attempts
    }

    /// Why the delivery waited, if it did.
    var reason: WaitReason? {
        guard case .waited(_, let reason, _) = self else { return nil }
        return reason
    }

    /// Until when it was to wait, if it did.
    var dueAt: Timestamp? {
        guard case .waited(_, _, let dueAt) = self else { return nil }
        return dueAt
    }
}

/// The halts that began and ended with a batch of answers.
struct HaltNews: Sendable {
    /// The new halts.
    var begun: [(container: ContainerKey, halt: OutcomeJudge.Halt)] = []
    /// Whether any halt ended.
    var hasEnded = false
}

/// What the answers so far say about the next deliveries: which tokens are dead, which deliveries
/// must wait and for what, and which delivery supersedes another.
struct SendRules: Sendable {
    /// The judgement of one answer.
    struct Judgement: Sendable {
        /// The answer, as the rules interpret it.
        let outcome: PushOutcome
        /// What happens to the delivery.
        let resolution: Resolution
    }

    let judge: OutcomeJudge
    private let presence: (any DevicePresence)?
    private(set) var halts = Halts()
    private var tokenBreaker = TokenVerdictBreaker()
    private var gatewayBreaker = GatewayBreaker()
    private var pacing: DevicePacing
    private var holds = HoldRules()
    private var throttles = ThrottleMemory()
    private var collapses = CollapseMemory()
    private var deadTokens = DeadTokenMemory()
    private var unanswered = UnansweredMemory()
    private var generator: any RandomNumberGenerator & Sendable

    init(
        judge: OutcomeJudge, silentPushesPerHour: Int,
        generator: any RandomNumberGenerator & Sendable, presence: (any DevicePresence)? = nil
    ) {
        self.judge = judge
        self.presence = presence
        pacing = DevicePacing(silentPerHour: silentPushesPerHour)
        self.generator = generator
    }

    // MARK: What throttles count

    /// Returns the lines of `deliveries` whose durable places must be learned before these are
    /// decided on.
    mutating func unknownLines(among deliveries: some Sequence<OwedDelivery>) -> Set<ThrottledLine>
    {
        throttles.unknownLines(among: deliveries)
    }

    /// Adds the durable places of lines.
    mutating func learn(_ pasts: [ThrottlePast], at now: Timestamp) {
        throttles.learn(pasts, at: now)
    }

    /// Returns the place that a push took, if it is not durable yet.
    func unrecordedPlace(of owed: OwedDelivery) -> ThrottlePlace? {
        owed.kindness?.subscription.throttle == nil
            ? nil : throttles.unrecordedPlace(of: owed.delivery)
    }

    /// Notes that places are durable.
    mutating func recorded(_ places: [ThrottlePlace]) {
        throttles.recorded(places)
    }

    // MARK: Dead tokens

    /// Notes that the registry has forgotten dead tokens.
    mutating func recorded(_ tokens: [DeadToken]) {
        deadTokens.recorded(tokens)
    }

    /// Notes that the registry is about to be asked to whom the tokens of waiting deliveries
    /// belong.
    mutating func registryIsAsked() {
        deadTokens.registryIsAsked()
    }

    // MARK: Before it is sent

    /// Remembers an owed delivery, which may supersede older ones of its record.
    mutating func remember(_ delivery: Delivery) {
        collapses.insert(delivery)
    }

    /// Decides whether a delivery is sent now.
    ///
    /// The first check is whether its device has already seen the change. Next come the reasons
    /// that end it whatever the state of the gateway: it expired, its token is dead, it was
    /// withdrawn, or a newer delivery supersedes it. Last come the reasons to wait, beginning with
    /// those of the recipient. The budget of the device is checked at the end, because only a
    /// delivery that is about to be sent may take a place in it.
    mutating func decide(
        on delivery: OwedDelivery, _ past: DeliveryPast, _ withdrawal: Withdrawal?,
        at now: Timestamp
    ) -> SendDecision {
        if let seen = sight(of: delivery, past, at: now) { return .settle(seen) }
        if let ending = finalEnding(of: delivery, past, withdrawal, at: now) {
            return .settle(ending)
        }
        if let wait = waitForConnection(delivery, past, at: now) { return .settle(wait) }
        if let hold = holds.hold(on: delivery, attempts: past.attempts, at: now) {
            return .settle(judge.held(delivery, attempts: past.attempts, hold, at: now))
        }
        if let until = pacing.hold(on: delivery.delivery, at: now) {
            return .settle(waiting(delivery, past, until: until, .deviceHold, at: now))
        }
        if let halt = halts.halt(of: delivery.delivery, at: now) { return .wait(halt) }
        // A new delivery that is likely to fail must not take the trial of those that wait.
        if case .new = past, tokenBreaker.isSuspect(delivery),
            let halt = halts.topicHalt(of: delivery.delivery)
        {
            return .wait(halt)
        }
        if let throttle = delivery.kindness?.subscription.throttle,
            let until = throttles.place(
                delivery.delivery, throttle, hasGone: past.attempts > 0, at: now)
        {
            return .settle(
                judge.held(delivery, attempts: past.attempts, .throttled(until: until), at: now))
        }
        let until = pacing.reserve(delivery.delivery, waitingFor: past.reason, at: now)
        if let until {
            return .settle(waiting(delivery, past, until: until, .devicePace, at: now))
        }
        halts.letThrough(delivery.delivery, at: now)
        return .send
    }

    /// Returns the resolution of a delivery whose device was told over its connection.
    ///
    /// Returns `nil` if it was not, or if it wants a push anyway.
    private func sight(
        of delivery: OwedDelivery, _ past: DeliveryPast, at now: Timestamp
    ) -> Resolution? {
        guard past.reason?.hold == .connected,
            presence?.endWait(for: delivery.delivery.id) == true,
            delivery.kindness?.isUnlessConnected == true
        else { return nil }
        return Resolution(seen: delivery, attempts: past.attempts, at: now)
    }

    /// Makes a new delivery wait, once, while its device may be told over its connection.
    private func waitForConnection(
        _ delivery: OwedDelivery, _ past: DeliveryPast, at now: Timestamp
    ) -> Resolution? {
        guard case .new = past, delivery.kindness?.isUnlessConnected == true, let presence else {
            return nil
        }
        let hold = HoldRules.Hold.connected(since: now)
        guard judge.lasts(delivery, until: hold.until ?? now),
            presence.awaitDevice(of: delivery.delivery, at: now)
        else { return nil }
        return judge.held(delivery, attempts: 0, hold, at: now)
    }

    /// Returns the resolution of a delivery that was not sent before, or `nil` if it is to be sent.
    mutating func firstEnding(
        of delivery: OwedDelivery, _ withdrawal: Withdrawal?, at now: Timestamp
    ) -> Resolution? {
        switch decide(on: delivery, .new, withdrawal, at: now) {
        case .send: nil
        case .settle(let resolution): resolution
        case .wait(let halt):
            waiting(delivery, .new, until: now, .said(halt.reason), at: now)
        }
    }

    private func waiting(
        _ delivery: OwedDelivery, _ past: DeliveryPast, until: Timestamp, _ reason: WaitReason,
        at now: Timestamp
    ) -> Resolution {
        judge.waiting(
            delivery, attempts: past.attempts, until: until, status: 0, reason: reason, at: now)
    }

    private func finalEnding(
        of delivery: OwedDelivery, _ past: DeliveryPast, _ withdrawal: Withdrawal?,
        at now: Timestamp
    ) -> Resolution? {
        let ending = judge.ending(
            ofUnsent: delivery, attempts: past.attempts, past.reason, dueAt: past.dueAt, at: now)
        if let ending { return ending }
        func unsent(_ reason: String, _ ending: SettledEnding) -> Resolution {
            Resolution(
                deadLetter: DeadLetter(
                    delivery: delivery, attempts: past.attempts, status: 0, reason: reason,
                    at: now), ending)
        }
        if deadTokens.holds(delivery.delivery, stands: past.reason != nil && withdrawal == nil) {
            return unsent("the device token is dead", .deadToken)
        }
        if let withdrawal { return unsent(withdrawal.rawValue, .withdrawn) }
        guard case .waited = past, collapses.supersedes(delivery.delivery) else { return nil }
        return unsent("superseded by a newer change of the record", .superseded)
    }

    /// Orders due retries, so that the best candidates for a trial come first where there is a
    /// halt.
    func inOrderOfTrial(_ due: [Retry]) -> [Retry] {
        guard halts.count > 0 else { return due }
        let ranked = due.enumerated().map { ($0.offset, tokenBreaker.rank($0.element.delivery)) }
        return ranked.sorted { ($0.1, $0.0) < ($1.1, $1.0) }.map { due[$0.0] }
    }

    // MARK: After its answer

    /// Judges the end of an attempt, and learns from it.
    mutating func judge(
        _ completion: PushCompletion, of owed: OwedDelivery, attempts: UInt16, at now: Timestamp,
        news: inout HaltNews
    ) -> Judgement {
        let delivery = owed.delivery
        let outcome = tokenBreaker.weigh(completion.outcome, of: owed)
        let verdict = judge.judge(
            outcome, of: owed, attempts: attempts, unanswered: unanswered[delivery.id], at: now,
            using: &generator)
        note(outcome, of: delivery, verdict.resolution, at: now)
        let sentAt = now.advanced(by: .zero - completion.latency)
        if case .accepted = outcome, halts.remove(for: delivery, sentAt: sentAt) {
            news.hasEnded = true
        }
        let broken = gatewayBreaker.note(outcome, of: delivery, at: now)
        if case .works = outcome.standing, halts.removeGateway(for: delivery, sentAt: sentAt) {
            news.hasEnded = true
        }
        if let halt = verdict.halt { add(halt, for: delivery.container, at: now, to: &news) }
        if let broken { add(broken, for: delivery.container, at: now, to: &news) }
        return Judgement(outcome: outcome, resolution: verdict.resolution)
    }

    /// Remembers what an attempt showed about its delivery, token and device.
    private mutating func note(
        _ outcome: PushOutcome, of delivery: Delivery, _ resolution: Resolution, at now: Timestamp
    ) {
        if let dead = resolution.deadToken { deadTokens.insert(dead) }
        if resolution.dueAt != nil, outcome.wasUnanswered {
            unanswered.add(delivery.id)
        } else {
            unanswered.remove(delivery.id)
        }
        if case .refused(let refusal) = outcome, case .retry(_, .device) = refusal.reaction,
            let dueAt = resolution.dueAt
        {
            pacing.hold(delivery, until: dueAt, at: now)
        }
    }

    private mutating func add(
        _ halt: OutcomeJudge.Halt, for container: ContainerKey, at now: Timestamp,
        to news: inout HaltNews
    ) {
        if halts.add(halt, for: container, at: now) { news.begun.append((container, halt)) }
    }

    // MARK: As time passes

    /// Checks the failing gateways, even if little is sent.
    mutating func look(at now: Timestamp, news: inout HaltNews) {
        for (container, halt) in gatewayBreaker.look(at: now) {
            add(halt, for: container, at: now, to: &news)
        }
    }

    /// Notes that a delivery is sent, so that a gateway that does not answer is found.
    mutating func noteSending(of delivery: Delivery, as ticket: DeliveryTracker.Ticket) {
        // A delivery of the log is adopted if its answer is slow, and its silence is noted then.
        if case .log = ticket { return }
        gatewayBreaker.noteSending(of: delivery)
    }

    /// Counts a delivery that has not been answered since `opened`.
    mutating func noteSilence(
        in lane: RetryLane, since opened: Timestamp, at now: Timestamp, news: inout HaltNews
    ) {
        guard let halt = gatewayBreaker.noteSilence(in: lane, since: opened, at: now) else {
            return
        }
        add(halt, for: lane.container, at: now, to: &news)
    }

    /// Ends a halt for which nothing waits any more.
    ///
    /// The failure counts stay.
    mutating func end(untried key: Halts.Key, at now: Timestamp, news: inout HaltNews) {
        if halts.remove(untried: key, at: now) { news.hasEnded = true }
    }

    /// Ends a container's halts, and forgets its counts.
    ///
    /// Returns how many halts ended.
    mutating func resume(_ container: ContainerKey) -> Int {
        let before = halts.count
        halts.remove(container)
        tokenBreaker.reset(container)
        gatewayBreaker.reset(container)
        return before - halts.count
    }

    /// Moves all times back by `step`, by which the clock was set back.
    mutating func clockWasSetBack(by step: Duration) {
        halts.clockWasSetBack(by: step)
        gatewayBreaker.clockWasSetBack(by: step)
        pacing.clockWasSetBack(by: step)
        throttles.clockWasSetBack(by: step)
    }
}

extension PushOutcome {
    /// Whether the attempt failed without a judgement of the gateway about the push: it was lost or
    /// not sent, or must go over another connection.
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
