import Gateway
import RelayModel
import Storage

/// Finds out that the gateway cannot be used for a container, so that its deliveries wait together
/// instead of failing one by one: the circuit breaker for each gateway and container.
///
/// A connection that is lost fails everything that was open on it in one moment, and the next one
/// works. So failures count only once they last; a single answer of any kind ends the count.
struct GatewayBreaker: Sendable {
    private struct Key: Hashable {
        let container: ContainerKey
        let environment: GatewayEnvironment
    }

    private struct Failures {
        var count = 0
        let since: Timestamp
        /// How long the deliveries waited last, and until when; `nil` before the first time.
        var pause: Duration?
        var until: Timestamp?
    }

    /// Failures in a row before anything waits.
    static let leastFailures = 20
    /// For how long there must have been nothing else.
    static let leastTime = Duration.seconds(1)
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
        guard outcome.isAnswer else {
            switch outcome {
            case .unknown(let cause), .notSent(let cause):
                return fail(key, cause: cause.reason, at: now)
            case .refused(let refusal): return fail(key, cause: refusal.reason, at: now)
            case .accepted: return nil
            }
        }
        if !failures.isEmpty { failures[key] = nil }
        return nil
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

    /// Forgets what was counted for a container, after its settings were mended.
    mutating func reset(_ container: ContainerKey) {
        failures = failures.filter { $0.key.container != container }
    }

    private mutating func fail(
        _ key: Key, cause: String, at now: Timestamp
    ) -> OutcomeJudge.Halt? {
        var run = failures[key] ?? Failures(since: now)
        run.count += 1
        defer { failures[key] = run }
        // What was open when the wait began says nothing new.
        if let until = run.until, now < until { return nil }
        guard run.count >= Self.leastFailures, now.duration(since: run.since) >= Self.leastTime
        else { return nil }
        let pause = run.pause.map { min($0 * 2, Self.longestPause) } ?? Self.firstPause
        run.pause = pause
        run.until = now.advanced(by: pause)
        return OutcomeJudge.Halt(
            scope: .gateway(key.environment), until: now.advanced(by: pause), pause: pause,
            reason: "the gateway cannot be used: \(cause)")
    }
}
