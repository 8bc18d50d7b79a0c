package import Gateway
package import RelayModel

/// Decides what the end of an attempt means for the delivery.
///
/// Pure. Randomness comes in as a parameter.
package struct OutcomeJudge: Sendable {
    /// The policy for trying deliveries again.
    package var retries: RetryPolicy
    /// How long deliveries of a paused container or topic wait before the next trial.
    package var pause: Duration

    package init(retries: RetryPolicy = RetryPolicy(), pause: Duration = .seconds(60)) {
        self.retries = retries
        self.pause = pause
    }

    /// What follows from the end of an attempt.
    package struct Verdict: Sendable, Hashable {
        /// What happens to the delivery.
        package var resolution: Resolution
        /// The halt that begins, if deliveries besides this one must wait.
        package var halt: Halt?
    }

    /// A wait of many deliveries, which ends when a person has fixed the problem, or at a time.
    package struct Halt: Sendable, Hashable {
        /// The deliveries that wait.
        package enum Scope: Sendable, Hashable {
            /// All deliveries for one topic of the container in one gateway environment.
            case topic(String, GatewayEnvironment)
            /// All deliveries of the container in one gateway environment, because the gateway does
            /// not accept its credential there.
            case container(GatewayEnvironment)
            /// All deliveries of the container in one gateway environment, because the gateway
            /// cannot be used.
            case gateway(GatewayEnvironment)

            /// The scope in words.
            package var words: String {
                switch self {
                case .container(let environment): "credential, \(environment.rawValue)"
                case .gateway(let environment): "gateway, \(environment.rawValue)"
                case .topic(let topic, let environment):
                    "topic \(topic), \(environment.rawValue)"
                }
            }
        }

        /// The deliveries that wait.
        package var scope: Scope
        /// The time when the wait ends.
        ///
        /// Then one attempt is made.
        package var until: Timestamp
        /// How long the others wait after one delivery was let through.
        package var pause: Duration
        /// The gateway's reason.
        package var reason: String
        /// The time until which the gateway asked to be left alone, if it did.
        package var asked: Timestamp?
    }

    /// A delivery with its earlier attempts.
    private struct Course {
        let delivery: OwedDelivery
        /// The number of used attempts, not counting the one that is judged.
        let attempts: UInt16
        /// The number of attempts immediately before this one that ended without an answer.
        let unanswered: Int
        let now: Timestamp

        /// The number of used attempts, including the one that is judged.
        var attempt: UInt16 { attempts < .max ? attempts + 1 : .max }
    }

    /// Judges the end of an attempt of `delivery`.
    ///
    /// Only answers of the gateway use up attempts. A request that was not sent does not count. An
    /// attempt whose answer was lost counts as the first if there was none before, and otherwise as
    /// a repetition of the last. So connection errors never make a delivery fail by themselves: it
    /// waits until it expires.
    ///
    /// - Parameters:
    ///   - outcome: How the attempt ended.
    ///   - delivery: The delivery of the attempt.
    ///   - attempts: The number of attempts used before.
    ///   - unanswered: The number of attempts immediately before this one that ended without an
    ///     answer.
    ///   - now: The time.
    ///   - generator: The source of randomness that spreads retries.
    /// - Returns: What happens to the delivery, and which others must wait.
    package func judge(
        _ outcome: PushOutcome, of delivery: OwedDelivery, attempts: UInt16, unanswered: Int = 0,
        at now: Timestamp, using generator: inout some RandomNumberGenerator
    ) -> Verdict {
        let course = Course(
            delivery: delivery, attempts: attempts, unanswered: unanswered, now: now)
        switch outcome {
        case .accepted:
            return Verdict(resolution: accepted(course), halt: nil)
        case .notSent(let cause):
            return Verdict(
                resolution: later(course, attempts: attempts, reason: cause.reason, &generator),
                halt: nil)
        case .unknown(let cause):
            return Verdict(
                resolution: later(
                    course, attempts: max(attempts, 1), reason: cause.reason, &generator),
                halt: nil)
        case .refused(let refusal):
            return judge(refusal, course, &generator)
        }
    }

    private func accepted(_ course: Course) -> Resolution {
        Resolution(accepted: course.delivery, attempts: course.attempt, at: course.now)
    }

    private func judge(
        _ refusal: GatewayRefusal, _ course: Course,
        _ generator: inout some RandomNumberGenerator
    ) -> Verdict {
        let environment = course.delivery.delivery.gatewayEnvironment
        switch refusal.reaction {
        case .deliver:
            return Verdict(resolution: accepted(course), halt: nil)
        case .retry(let after?, .gateway):
            // The whole container waits. So the delivery's own wait is only the back-off, and it
            // also ends with the halt.
            return Verdict(
                resolution: again(course, refusal, atLeast: nil, &generator),
                halt: asked(after, refusal, environment, at: course.now))
        case .retry(let after, _):
            return Verdict(
                resolution: again(course, refusal, atLeast: after, &generator), halt: nil)
        case .retryOnFreshConnection, .renewProviderToken:
            return Verdict(resolution: atOnce(course, refusal, &generator), halt: nil)
        case .forgetDeviceToken(let verdict):
            guard let token = deadToken(verdict, of: course.delivery, at: course.now) else {
                return Verdict(
                    resolution: again(course, refusal, atLeast: nil, &generator), halt: nil)
            }
            return Verdict(
                resolution: dead(course, refusal, reason: refusal.reason, .unregistered, token),
                halt: nil)
        case .deadLetter:
            return Verdict(
                resolution: dead(course, refusal, reason: refusal.reason, .refused), halt: nil)
        case .pauseTopic:
            let topic = course.delivery.delivery.notification.topic
            return paused(.topic(topic, environment), course, refusal)
        case .pauseContainer:
            return paused(.container(environment), course, refusal)
        }
    }

    /// Pauses a scope.
    ///
    /// A delivery that waits for a wrong setting to be fixed has not used up an attempt.
    private func paused(
        _ scope: Halt.Scope, _ course: Course, _ refusal: GatewayRefusal
    ) -> Verdict {
        let pause = refusal.trialAfter ?? pause
        // The delivery is due at once. Its lane is halted, so it goes as soon as the halt ends.
        return Verdict(
            resolution: waiting(
                course.delivery, attempts: course.attempts, until: course.now,
                status: UInt16(clamping: refusal.status), reason: .said(refusal.reason),
                at: course.now),
            halt: Halt(
                scope: scope, until: course.now.advanced(by: pause), pause: pause,
                reason: refusal.reason))
    }

    /// Returns the halt of a gateway that asks to be left alone.
    ///
    /// It lasts as long as the gateway says, with earlier trials, because the gateway may not mean
    /// it.
    private func asked(
        _ wish: Duration, _ refusal: GatewayRefusal, _ environment: GatewayEnvironment,
        at now: Timestamp
    ) -> Halt {
        let wish = min(wish, retries.longestWish)
        let pause = min(wish, Halts.firstTrial)
        return Halt(
            scope: .gateway(environment), until: now.advanced(by: pause), pause: pause,
            reason: "the gateway asks for a pause: \(refusal.status) \(refusal.reason)",
            asked: now.advanced(by: wish))
    }

    // MARK: Deadlines

    /// How long the relay tries to send a notification for the first time if it was to expire at
    /// once.
    package static let atOnceBound = Duration.seconds(3600)

    /// Returns when a delivery expires, if it does.
    ///
    /// `attempts` is the number of used attempts.
    ///
    /// A notification that was to expire at once is owed one send, as with APNs. Until a request
    /// may have reached the gateway, its deadline is ``atOnceBound`` after the change.
    private func deadline(of delivery: OwedDelivery, attempts: UInt16) -> Timestamp? {
        let delivery = delivery.delivery
        guard let expiration = delivery.notification.expiration else { return nil }
        guard attempts == 0, expiration <= delivery.appendedAt else { return expiration }
        return delivery.appendedAt.advanced(by: Self.atOnceBound)
    }

    /// Returns the end of a delivery whose notification expired before it could be sent, or `nil`
    /// if it may be sent.
    ///
    /// `reason` is why it waited last, and `dueAt` until when. A delivery that was held until
    /// before its deadline had something else to wait for, too.
    package func ending(
        ofUnsent delivery: OwedDelivery, attempts: UInt16, _ reason: WaitReason?,
        dueAt: Timestamp? = nil, at now: Timestamp
    ) -> Resolution? {
        guard let deadline = deadline(of: delivery, attempts: attempts), deadline <= now else {
            return nil
        }
        // Moments are kept to the second in some places, and more exactly in others.
        let wasToBeHeld = dueAt.map { deadline <= $0.advanced(by: .seconds(1)) } ?? false
        let wasHeld = reason?.hold != nil && wasToBeHeld
        return expired(
            delivery, attempts, status: 0, reason: reason?.cause ?? "", now,
            wasHeld ? .expiredHeld : .expired)
    }

    /// Returns the resolution of a delivery that must wait until `until`.
    ///
    /// If it would have expired by then, it ends.
    package func waiting(
        _ delivery: OwedDelivery, attempts: UInt16, until: Timestamp, status: UInt16,
        reason: WaitReason, at now: Timestamp
    ) -> Resolution {
        if let deadline = deadline(of: delivery, attempts: attempts), deadline <= until {
            return expired(delivery, attempts, status: status, reason: reason.cause, now)
        }
        return Resolution(
            retry: Retry(delivery: delivery, attempts: attempts, dueAt: until, reason: reason),
            status: status, at: now, .waiting)
    }

    /// Returns whether a delivery that was not sent may still be sent at `moment`.
    package func lasts(_ delivery: OwedDelivery, until moment: Timestamp) -> Bool {
        deadline(of: delivery, attempts: 0).map { moment < $0 } ?? true
    }

    /// The longest hold of a delivery that never expires.
    package static let longestHold = Duration.seconds(30 * 86_400)

    /// Returns the resolution of a delivery that is held back.
    ///
    /// If it would have expired by the end of the hold, it ends.
    ///
    /// A delivery that is held until the recipient ends the hold is looked at again when it
    /// expires. A delivery that is told together with others does not expire before the digest
    /// closes, which may be sooner.
    package func held(
        _ delivery: OwedDelivery, attempts: UInt16, _ hold: HoldRules.Hold, at now: Timestamp
    ) -> Resolution {
        let reason = WaitReason.held(hold.reason)
        let deadline = deadline(of: delivery, attempts: attempts)
        if let deadline, let until = hold.until, deadline <= until, !hold.reason.isTogether {
            return expired(delivery, attempts, status: 0, reason: reason.text, now, .expiredHeld)
        }
        var retry = Retry(
            delivery: delivery, attempts: attempts,
            dueAt: hold.until ?? deadline ?? now.advanced(by: Self.longestHold), reason: reason)
        retry.judgedBy = delivery.kindness.map { JudgedVersions($0) }
        return Resolution(retry: retry, status: 0, at: now, .held)
    }

    // MARK: Again

    /// Tries again after an answer that may be different later.
    private func again(
        _ course: Course, _ refusal: GatewayRefusal, atLeast asked: Duration?,
        _ generator: inout some RandomNumberGenerator
    ) -> Resolution {
        guard Int(course.attempt) < retries.maximumAttempts else {
            let reason = DeliveryBound.attempts.reason(refusal.reason)
            return dead(course, refusal, reason: reason, .exhausted)
        }
        return later(
            course, attempts: course.attempt, status: UInt16(clamping: refusal.status),
            reason: refusal.reason, atLeast: asked, &generator)
    }

    /// Tries again at once, on another connection or with another provider token, which already
    /// exists.
    ///
    /// The first time in a row does not count as an attempt, and has no wait.
    private func atOnce(
        _ course: Course, _ refusal: GatewayRefusal,
        _ generator: inout some RandomNumberGenerator
    ) -> Resolution {
        guard course.unanswered == 0 else {
            return again(course, refusal, atLeast: nil, &generator)
        }
        return waiting(
            course.delivery, attempts: course.attempts, until: course.now,
            status: UInt16(clamping: refusal.status), reason: .said(refusal.reason),
            at: course.now)
    }

    private func later(
        _ course: Course, attempts: UInt16, status: UInt16 = 0, reason: String,
        atLeast asked: Duration? = nil, _ generator: inout some RandomNumberGenerator
    ) -> Resolution {
        let due = retries.dueAt(
            afterFailures: max(course.unanswered + 1, Int(attempts)), now: course.now,
            deadline: deadline(of: course.delivery, attempts: attempts), atLeast: asked,
            using: &generator)
        guard let due else {
            return expired(course.delivery, attempts, status: status, reason: reason, course.now)
        }
        return Resolution(
            retry: Retry(
                delivery: course.delivery, attempts: attempts, dueAt: due, reason: .said(reason)),
            status: status, at: course.now)
    }

    // MARK: Endings

    private func dead(
        _ course: Course, _ refusal: GatewayRefusal, reason: String, _ ending: SettledEnding,
        _ token: DeadToken? = nil
    ) -> Resolution {
        Resolution(
            deadLetter: DeadLetter(
                delivery: course.delivery,
                // A request that was not sent is not an attempt.
                attempts: refusal.status == 0 ? course.attempts : course.attempt,
                status: UInt16(clamping: refusal.status), reason: reason, at: course.now),
            deadToken: token, ending)
    }

    private func expired(
        _ delivery: OwedDelivery, _ attempts: UInt16, status: UInt16, reason: String,
        _ now: Timestamp, _ ending: SettledEnding = .expired
    ) -> Resolution {
        Resolution(
            deadLetter: DeadLetter(
                delivery: delivery, attempts: attempts, status: status,
                reason: DeliveryBound.expiration.reason(reason), at: now), ending)
    }

    /// Returns the token to forget.
    ///
    /// Returns `nil` if it was registered after the gateway's verdict (APNs: the `timestamp` of a
    /// 410). Then it is valid again, and the delivery is tried again.
    private func deadToken(
        _ verdict: DeviceTokenVerdict, of delivery: OwedDelivery, at now: Timestamp
    ) -> DeadToken? {
        let since: Timestamp
        switch verdict {
        // A verdict cannot be newer than its answer. Otherwise a gateway whose clock is ahead could
        // kill a registration that comes after the answer.
        case .dead(let moment): since = min(moment ?? now, now)
        // The gateway does not know a token that was just registered either, if that was for
        // another environment. So the verdict is about this token in any case.
        case .unknownToGateway: since = now
        }
        guard delivery.delivery.registeredAt <= since else { return nil }
        return DeadToken(
            container: delivery.delivery.container, token: delivery.delivery.token, since: since)
    }
}
