import Gateway
import RelayModel
import Storage

/// The circuit breaker for each gateway and container.
///
/// It detects that the gateway cannot be used for a container, so that the container's deliveries
/// wait together instead of failing one by one.
///
/// A lost connection fails all its open requests at once, and the next connection works. So
/// failures only count once they last. An answer also counts as a failure if the gateway says that
/// it has a fault, is going away or wants to be left alone. Any other answer ends the count.
struct GatewayBreaker: Sendable {
    private struct Key: Hashable {
        let container: ContainerKey
        let environment: GatewayEnvironment
    }

    private struct Failures {
        var count = 0
        var looks = 0
        var cause = ""
        var since: Timestamp
        /// The length of the last wait, and its end, or `nil` before the first wait.
        var pause: Duration?
        var until: Timestamp?
    }

    /// The number of consecutive failures before deliveries wait.
    static let leastFailures = 20
    /// The shortest time of nothing but failures before deliveries wait.
    static let leastTime = Duration.seconds(1)
    /// The number of calls of `look(at:)` after which fewer failures suffice, because little is
    /// sent.
    ///
    /// It counts calls and not time, so that a jump of the clock does not count against the
    /// gateway.
    static let mostLooks = 8
    /// The first wait.
    ///
    /// It doubles with each trial that fails.
    static let firstPause = Duration.seconds(1)
    /// The longest wait.
    static let longestPause = Duration.seconds(30)

    private var failures: [Key: Failures] = [:]
    /// The gateways that were given deliveries that are not adopted if their answer is slow, with
    /// the number of looks since then, as long as nothing has ended there.
    private var silent: [Key: Int] = [:]

    /// Notes that a delivery is sent that had waited, or that belongs to a range.
    ///
    /// For the others ``noteSilence(in:since:at:)`` is called when they are adopted.
    mutating func noteSending(of delivery: Delivery) {
        guard delivery.gateway == .apns else { return }
        let key = Key(container: delivery.container, environment: delivery.gatewayEnvironment)
        if failures[key] == nil, silent[key] == nil { silent[key] = 0 }
    }

    /// Counts the end of an attempt.
    ///
    /// Returns the halt that follows, if one does.
    mutating func note(
        _ outcome: PushOutcome, of delivery: Delivery, at now: Timestamp
    ) -> OutcomeJudge.Halt? {
        // If a courier's store has no room, that says nothing about APNs.
        guard delivery.gateway == .apns else { return nil }
        let key = Key(container: delivery.container, environment: delivery.gatewayEnvironment)
        if !silent.isEmpty { silent[key] = nil }
        switch outcome.standing {
        case .works:
            if !failures.isEmpty { failures[key] = nil }
            return nil
        case .fails(let cause): return fail(key, cause: cause, at: now)
        case .unseen: return nil
        }
    }

    /// Counts a delivery that has not been answered since `opened`.
    ///
    /// Its silence counts from then on, so that a gateway that hangs is noticed as early as one
    /// that refuses connections.
    mutating func noteSilence(
        in lane: RetryLane, since opened: Timestamp, at now: Timestamp
    ) -> OutcomeJudge.Halt? {
        guard lane.topic != GatewayKind.courier.rawValue else { return nil }
        let key = Key(container: lane.container, environment: lane.environment)
        if failures[key] == nil {
            let looks = Int(now.duration(since: opened).components.seconds)
            failures[key] = Failures(looks: looks, since: opened)
        }
        return fail(key, cause: "no answer", at: now)
    }

    /// Moves all times back by `step`, by which the clock was set back.
    mutating func clockWasSetBack(by step: Duration) {
        failures = failures.mapValues { run in
            var moved = run
            moved.since = run.since.back(by: step)
            moved.until = run.until?.back(by: step)
            return moved
        }
    }

    /// Forgets the counts of a container, after its settings were fixed.
    mutating func reset(_ container: ContainerKey) {
        failures = failures.filter { $0.key.container != container }
        silent = silent.filter { $0.key.container != container }
    }

    /// Checks the failing gateways, once a second.
    ///
    /// Returns the halts of those that have failed for long enough, even if little was sent.
    mutating func look(
        at now: Timestamp
    ) -> [(container: ContainerKey, halt: OutcomeJudge.Halt)] {
        lookAtSilent(at: now)
        return failures.filter { $0.value.pause == nil }.keys.compactMap { key in
            guard var run = failures[key] else { return nil }
            run.looks += 1
            defer { failures[key] = run }
            guard run.looks >= Self.mostLooks else { return nil }
            return (key.container, Self.pause(&run, key, at: now))
        }
    }

    /// Counts as failures the gateways that have been silent for as many looks as a failure takes.
    private mutating func lookAtSilent(at now: Timestamp) {
        for (key, looks) in silent {
            guard looks + 1 >= Self.mostLooks else {
                silent[key] = looks + 1
                continue
            }
            silent[key] = nil
            if failures[key] == nil {
                failures[key] = Failures(
                    count: 1, looks: looks, cause: "no answer", since: now)
            }
        }
    }

    private mutating func fail(
        _ key: Key, cause: String, at now: Timestamp
    ) -> OutcomeJudge.Halt? {
        var run = failures[key] ?? Failures(since: now)
        run.count += 1
        run.cause = cause
        defer { failures[key] = run }
        // Requests that were open when the wait began say nothing new.
        if let until = run.until, now < until { return nil }
        // After a first halt, each failing trial counts.
        let isMany = run.pause != nil || run.count >= Self.leastFailures
        guard isMany, now.duration(since: run.since) >= Self.leastTime else { return nil }
        return Self.pause(&run, key, at: now)
    }

    private static func pause(
        _ run: inout Failures, _ key: Key, at now: Timestamp
    ) -> OutcomeJudge.Halt {
        let pause = run.pause.map { min($0 * 2, longestPause) } ?? firstPause
        run.pause = pause
        run.until = now.advanced(by: pause)
        return OutcomeJudge.Halt(
            scope: .gateway(key.environment), until: now.advanced(by: pause), pause: pause,
            reason: "the gateway cannot be used: \(run.cause)")
    }
}

/// What the end of an attempt says about the state of the gateway.
enum GatewayStanding: Sendable, Hashable {
    /// The gateway works.
    case works
    /// The gateway cannot be used now.
    case fails(cause: String)
    /// The gateway was not asked.
    case unseen
}

extension PushOutcome {
    /// Whether the request was not sent because its device's registration had ended.
    var isForRegistration: Bool { self == .notSent(cause: .registrationEnded) }

    /// What this end says about the state of the gateway.
    var standing: GatewayStanding {
        switch self {
        case _ where isForRegistration: return .unseen
        case .accepted: return .works
        case .unknown(let cause), .notSent(let cause): return .fails(cause: cause.reason)
        case .refused(let refusal):
            if refusal.status == 0 { return .unseen }
            switch refusal.reaction {
            case .retry(_, .gateway), .retryOnFreshConnection, .renewProviderToken:
                return .fails(cause: refusal.reason)
            default:
                return refusal.status < 500 ? .works : .fails(cause: refusal.reason)
            }
        }
    }
}
