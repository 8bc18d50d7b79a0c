package import Gateway
package import RelayModel
package import Storage

/// Turns what a gateway answered into what becomes of the delivery.
///
/// Pure; chance comes in.
package struct OutcomeJudge: Sendable {
    /// When deliveries are tried again.
    package var retries: RetryPolicy
    /// How long deliveries of a paused container or topic wait before they are looked at again.
    package var pause: Duration

    /// Creates a judge.
    package init(retries: RetryPolicy = RetryPolicy(), pause: Duration = .seconds(60)) {
        self.retries = retries
        self.pause = pause
    }

    /// What follows from an answer.
    package struct Verdict: Sendable, Hashable {
        /// What becomes of the delivery.
        package var resolution: Resolution
        /// Who must wait, if somebody besides this delivery must.
        package var halt: Halt?
    }

    /// Something that waits until somebody has looked, or until a moment.
    package struct Halt: Sendable, Hashable {
        /// Who waits.
        package enum Scope: Sendable, Hashable {
            /// Everything for one topic of the container.
            case topic(String)
            /// Everything for the container.
            case container
            /// Everything for the container by one of the gateway's environments, because the
            /// gateway cannot be used.
            case gateway(GatewayEnvironment)
        }

        /// Who waits.
        package var scope: Scope
        /// Until when; then one attempt is made again.
        package var until: Timestamp
        /// How long the others wait after one was let through.
        package var pause: Duration
        /// What the gateway said.
        package var reason: String
    }

    /// Judges the end of attempt `attempts + 1` of `delivery`.
    package func judge(
        _ outcome: PushOutcome, of delivery: OwedDelivery, attempts: UInt16, at now: Timestamp,
        using generator: inout some RandomNumberGenerator
    ) -> Verdict {
        let attempt = attempts < .max ? attempts + 1 : .max
        switch outcome {
        case .accepted:
            return Verdict(
                resolution: Resolution(accepted: delivery, attempts: attempt, at: now), halt: nil)
        case .unknown(let cause), .notSent(let cause):
            return Verdict(
                resolution: again(
                    delivery, attempt, status: 0, reason: cause.reason, atLeast: nil, now,
                    &generator),
                halt: nil)
        case .refused(let refusal):
            return judge(refusal, of: delivery, attempt, now, &generator)
        }
    }

    private func judge(
        _ refusal: GatewayRefusal, of delivery: OwedDelivery, _ attempt: UInt16, _ now: Timestamp,
        _ generator: inout some RandomNumberGenerator
    ) -> Verdict {
        let status = UInt16(clamping: refusal.status)
        switch refusal.reaction {
        case .deliver:
            return Verdict(
                resolution: Resolution(accepted: delivery, attempts: attempt, at: now), halt: nil)
        case .retry(let after, _):
            return Verdict(
                resolution: again(
                    delivery, attempt, status: status, reason: refusal.reason, atLeast: after, now,
                    &generator), halt: nil)
        case .retryOnFreshConnection, .renewProviderToken:
            return Verdict(
                resolution: again(
                    delivery, attempt, status: status, reason: refusal.reason, atLeast: nil, now,
                    &generator), halt: nil)
        case .forgetDeviceToken(let verdict):
            let resolution =
                deadToken(verdict, of: delivery, at: now).map { token in
                    Resolution(
                        deadLetter: DeadLetter(
                            delivery: delivery, attempts: attempt, status: status,
                            reason: refusal.reason, at: now), deadToken: token)
                }
                ?? again(
                    delivery, attempt, status: status, reason: refusal.reason, atLeast: nil, now,
                    &generator)
            return Verdict(resolution: resolution, halt: nil)
        case .deadLetter:
            return Verdict(
                resolution: dead(delivery, attempt, status: status, reason: refusal.reason, now),
                halt: nil)
        case .pauseTopic:
            return paused(
                .topic(delivery.delivery.notification.topic), delivery, attempt, refusal, now)
        case .pauseContainer:
            return paused(.container, delivery, attempt, refusal, now)
        }
    }

    /// A delivery that waits for somebody else's mistake to be mended has not used up an attempt.
    private func paused(
        _ scope: Halt.Scope, _ delivery: OwedDelivery, _ attempt: UInt16,
        _ refusal: GatewayRefusal, _ now: Timestamp
    ) -> Verdict {
        let pause = refusal.trialAfter ?? pause
        // It is due, and lies in a lane that is halted: so it goes at once when the halt ends.
        return Verdict(
            resolution: waiting(
                delivery, attempts: attempt - 1, until: now,
                status: UInt16(clamping: refusal.status),
                reason: refusal.reason, at: now),
            halt: Halt(
                scope: scope, until: now.advanced(by: pause), pause: pause,
                reason: refusal.reason))
    }

    /// What becomes of a delivery whose notification expired before it could be sent; `nil` if it
    /// may be sent.
    ///
    /// A notification that was to expire at once is sent once, as APNs has it.
    package func ending(
        ofUnsent delivery: OwedDelivery, attempts: UInt16, _ reason: String, at now: Timestamp
    ) -> Resolution? {
        guard let expiration = delivery.delivery.notification.expiration, expiration <= now,
            attempts > 0 || delivery.delivery.appendedAt < expiration
        else { return nil }
        let cause = reason.isEmpty ? "expired" : "expired: \(reason)"
        return dead(delivery, attempts, status: 0, reason: cause, now)
    }

    /// What becomes of a delivery that must wait until `until`, and of one that would then have
    /// expired.
    package func waiting(
        _ delivery: OwedDelivery, attempts: UInt16, until: Timestamp, status: UInt16,
        reason: String, at now: Timestamp
    ) -> Resolution {
        if let expiration = delivery.delivery.notification.expiration, expiration <= until {
            return dead(delivery, attempts, status: status, reason: "expired: \(reason)", now)
        }
        return Resolution(
            retry: Retry(delivery: delivery, attempts: attempts, dueAt: until, reason: reason),
            status: status, at: now)
    }

    private func again(
        _ delivery: OwedDelivery, _ attempt: UInt16, status: UInt16, reason: String,
        atLeast asked: Duration?, _ now: Timestamp, _ generator: inout some RandomNumberGenerator
    ) -> Resolution {
        let due = retries.dueAt(
            afterAttempts: attempt, now: now,
            expiration: delivery.delivery.notification.expiration, atLeast: asked,
            using: &generator)
        guard let due else {
            let ending = Int(attempt) < retries.maximumAttempts ? "expired" : "attempts used up"
            return dead(delivery, attempt, status: status, reason: "\(ending): \(reason)", now)
        }
        return Resolution(
            retry: Retry(delivery: delivery, attempts: attempt, dueAt: due, reason: reason),
            status: status, at: now)
    }

    private func dead(
        _ delivery: OwedDelivery, _ attempt: UInt16, status: UInt16, reason: String,
        _ now: Timestamp
    ) -> Resolution {
        Resolution(
            deadLetter: DeadLetter(
                delivery: delivery, attempts: attempt, status: status, reason: reason, at: now))
    }

    /// The token to forget, or `nil` if it was registered after the gateway's verdict (APNs: the
    /// `timestamp` of a 410): then it lives again, and the delivery is tried again.
    private func deadToken(
        _ verdict: DeviceTokenVerdict, of delivery: OwedDelivery, at now: Timestamp
    ) -> DeadToken? {
        let since: Timestamp
        switch verdict {
        // A verdict cannot be newer than its answer: a gateway whose clock is ahead must not
        // outlive a registration that comes after it.
        case .dead(let moment): since = min(moment ?? now, now)
        // The gateway does not know a token that was registered just now either, if it was
        // registered for another environment: the verdict is about this token at any rate.
        case .unknownToGateway: since = now
        }
        guard delivery.delivery.registeredAt <= since else { return nil }
        return DeadToken(
            container: delivery.delivery.container, token: delivery.delivery.token, since: since)
    }
}
