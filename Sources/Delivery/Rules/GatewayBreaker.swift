import Gateway
import RelayModel
import Storage

/// Finds out that the gateway cannot be used for a container, so that its deliveries wait together
/// instead of failing one by one: the circuit breaker for each gateway and container.
///
/// A connection that is lost fails everything that was open on it in one moment, and the next one
/// works. So failures count only once they last. A failure is also an answer by which the gateway
/// says that it has a fault, goes away or wants to be left alone; any other answer ends the count.
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
        /// How long the deliveries waited last, and until when; `nil` before the first time.
        var pause: Duration?
        var until: Timestamp?
    }

    /// Failures in a row before anything waits.
    static let leastFailures = 20
    /// For how long there must have been nothing else.
    static let leastTime = Duration.seconds(1)
    /// Where there are fewer, because little is sent: how often somebody looks meanwhile.
    ///
    /// Looks and not time, so that a clock that leaps is no trouble of the gateway's.
    static let mostLooks = 8
    /// The first wait; it doubles with each trial that fails.
    static let firstPause = Duration.seconds(1)
    /// The longest wait.
    static let longestPause = Duration.seconds(30)

    private var failures: [Key: Failures] = [:]

    /// Counts the end of an attempt; returns the halt that follows from it, if one does.
    mutating func note(
        _ outcome: PushOutcome, of delivery: Delivery, at now: Timestamp
    ) -> OutcomeJudge.Halt? {
        // A courier's store that has no room says nothing of APNs.
        guard delivery.gateway == .apns else { return nil }
        let key = Key(container: delivery.container, environment: delivery.gatewayEnvironment)
        switch outcome.standing {
        case .works:
            if !failures.isEmpty { failures[key] = nil }
            return nil
        case .fails(let cause): return fail(key, cause: cause, at: now)
        case .unseen: return nil
        }
    }

    /// Counts a delivery that has not been answered since `opened`.
    mutating func noteSilence(
        in lane: RetryLane, since opened: Timestamp, at now: Timestamp
    ) -> OutcomeJudge.Halt? {
        guard lane.topic != GatewayKind.courier.rawValue else { return nil }
        let key = Key(container: lane.container, environment: lane.environment)
        if failures[key] == nil { failures[key] = Failures(since: opened) }
        return fail(key, cause: "no answer", at: now)
    }

    /// The clock goes `step` later than it did.
    mutating func clockWasSetBack(by step: Duration) {
        failures = failures.mapValues { run in
            var moved = run
            moved.since = run.since.back(by: step)
            moved.until = run.until?.back(by: step)
            return moved
        }
    }

    /// Forgets what was counted for a container, after its settings were mended.
    mutating func reset(_ container: ContainerKey) {
        failures = failures.filter { $0.key.container != container }
    }

    /// Looks at what fails, once a second: returns what has failed for so long that it counts,
    /// however little was sent.
    mutating func look(
        at now: Timestamp
    ) -> [(container: ContainerKey, halt: OutcomeJudge.Halt)] {
        failures.filter { $0.value.pause == nil }.keys.compactMap { key in
            guard var run = failures[key] else { return nil }
            run.looks += 1
            defer { failures[key] = run }
            guard run.looks >= Self.mostLooks else { return nil }
            return (key.container, Self.pause(&run, key, at: now))
        }
    }

    private mutating func fail(
        _ key: Key, cause: String, at now: Timestamp
    ) -> OutcomeJudge.Halt? {
        var run = failures[key] ?? Failures(since: now)
        run.count += 1
        run.cause = cause
        defer { failures[key] = run }
        // What was open when the wait began says nothing new.
        if let until = run.until, now < until { return nil }
        // Once it was halted, each trial that fails counts.
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

/// What the end of an attempt says about the gateway.
enum GatewayStanding: Sendable, Hashable {
    /// It is there, and does its work.
    case works
    /// It cannot be used now.
    case fails(cause: String)
    /// It was not asked.
    case unseen
}

extension PushOutcome {
    /// Whether the request came back because its device's registration had ended.
    var isForRegistration: Bool { self == .notSent(cause: .registrationEnded) }

    /// What this end says about the gateway.
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
