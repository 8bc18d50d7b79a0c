import Gateway
import RelayModel
import Storage

/// What becomes of a delivery when it is its turn.
enum SendDecision {
    /// It is sent.
    case send
    /// It is not sent now, or never.
    case settle(Resolution)
    /// It waits with all of its lane.
    case wait(OutcomeJudge.Halt)
}

/// What a delivery has behind it when it is its turn.
enum DeliveryPast {
    /// It was never sent, and never waited.
    case new
    /// It was kept as a retry.
    case waited(attempts: UInt16, WaitReason)

    /// The attempts that are used up.
    var attempts: UInt16 {
        guard case .waited(let attempts, _) = self else { return 0 }
        return attempts
    }

    /// Why it waited, if it did.
    var reason: WaitReason? {
        guard case .waited(_, let reason) = self else { return nil }
        return reason
    }
}

/// Which halts began and ended with some answers.
struct HaltNews: Sendable {
    /// The halts that are new.
    var begun: [(container: ContainerKey, halt: OutcomeJudge.Halt)] = []
    /// Whether a halt has ended.
    var hasEnded = false
}

/// What the answers so far say about what is sent next: which tokens are dead, who must wait and
/// for what, which delivery takes another's place.
struct SendRules: Sendable {
    /// What follows from one answer.
    struct Judgement: Sendable {
        /// The answer, as the rules take it.
        let outcome: PushOutcome
        /// What becomes of the delivery.
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

    /// The lines of `deliveries` of which it must learn what is durable before they are decided on.
    mutating func unknownLines(among deliveries: some Sequence<OwedDelivery>) -> Set<ThrottledLine>
    {
        throttles.unknownLines(among: deliveries)
    }

    /// Takes in what is durable of lines.
    mutating func learn(_ pasts: [ThrottlePast], at now: Timestamp) {
        throttles.learn(pasts, at: now)
    }

    /// The place that a push took and that is to become durable.
    func unrecordedPlace(of owed: OwedDelivery) -> ThrottlePlace? {
        owed.kindness?.subscription.throttle == nil
            ? nil : throttles.unrecordedPlace(of: owed.delivery)
    }

    /// Learns that places are durable.
    mutating func recorded(_ places: [ThrottlePlace]) {
        throttles.recorded(places)
    }

    // MARK: Dead tokens

    /// Learns that the registry has forgotten dead tokens.
    mutating func recorded(_ tokens: [DeadToken]) {
        deadTokens.recorded(tokens)
    }

    /// Learns that the registry is about to be asked whose the tokens are of what waits.
    mutating func registryIsAsked() {
        deadTokens.registryIsAsked()
    }

    // MARK: Before it is sent

    /// Remembers a delivery that is owed: older ones of its record may be of no use any more.
    mutating func remember(_ delivery: Delivery) {
        collapses.insert(delivery)
    }

    /// Decides whether a delivery is sent now.
    ///
    /// First what its device has seen already. Then what ends it whatever the gateway's state: it
    /// expired, its token is dead, it is withdrawn, a newer one takes its place. Then what it must
    /// wait for, first what its recipient asked for; its device's budget comes last, because only
    /// what is about to be sent may take a place in it.
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
        // What is new takes no trial's place from what waits, if it is likely to fail.
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

    /// What becomes of a delivery whose device was told over its connection; `nil` if it was not,
    /// or wants a push all the same.
    private func sight(
        of delivery: OwedDelivery, _ past: DeliveryPast, at now: Timestamp
    ) -> Resolution? {
        guard past.reason?.hold == .connected,
            presence?.endWait(for: delivery.delivery.id) == true,
            delivery.kindness?.isUnlessConnected == true
        else { return nil }
        return Resolution(seen: delivery, attempts: past.attempts, at: now)
    }

    /// What is new waits while its device may be told over its connection; once.
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

    /// What becomes of a delivery that was not sent before; `nil` sends it.
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
            ofUnsent: delivery, attempts: past.attempts, past.reason, at: now)
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

    /// What is due, first what had better try where something is halted.
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

    /// Remembers what an attempt showed about its delivery, its token and its device.
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

    /// Looks at gateways that fail, however little is sent.
    mutating func look(at now: Timestamp, news: inout HaltNews) {
        for (container, halt) in gatewayBreaker.look(at: now) {
            add(halt, for: container, at: now, to: &news)
        }
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

    /// Ends a halt for which nothing waits any more; what was counted before it counts on.
    mutating func end(untried key: Halts.Key, at now: Timestamp, news: inout HaltNews) {
        if halts.remove(untried: key, at: now) { news.hasEnded = true }
    }

    /// Ends a container's halts, and forgets what was counted for it; returns how many ended.
    mutating func resume(_ container: ContainerKey) -> Int {
        let before = halts.count
        halts.remove(container)
        tokenBreaker.reset(container)
        gatewayBreaker.reset(container)
        return before - halts.count
    }

    /// Every moment that is kept here moves with the clock.
    mutating func clockWasSetBack(by step: Duration) {
        halts.clockWasSetBack(by: step)
        gatewayBreaker.clockWasSetBack(by: step)
        pacing.clockWasSetBack(by: step)
        throttles.clockWasSetBack(by: step)
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
