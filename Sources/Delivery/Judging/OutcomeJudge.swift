package import Gateway
package import RelayModel

/// Turns what a gateway answered into what becomes of the delivery.
///
/// Pure; chance comes in.
package struct OutcomeJudge: Sendable {
    /// When deliveries are tried again.
    package var retries: RetryPolicy
    /// How long deliveries of a paused container or topic wait before they are looked at again.
    package var pause: Duration

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
            /// Everything for one topic of the container by one of the gateway's environments.
            case topic(String, GatewayEnvironment)
            /// Everything for the container by one of the gateway's environments, because the
            /// gateway does not honour its credential there.
            case container(GatewayEnvironment)
            /// Everything for the container by one of the gateway's environments, because the
            /// gateway cannot be used.
            case gateway(GatewayEnvironment)

            /// Who waits, as people read it.
            package var words: String {
                switch self {
                case .container(let environment): "credential, \(environment.rawValue)"
                case .gateway(let environment): "gateway, \(environment.rawValue)"
                case .topic(let topic, let environment):
                    "topic \(topic), \(environment.rawValue)"
                }
            }
        }

        /// Who waits.
        package var scope: Scope
        /// When it ends; then one attempt is made again.
        package var until: Timestamp
        /// How long the others wait after one was let through.
        package var pause: Duration
        /// What the gateway said.
        package var reason: String
        /// Until when the gateway asked to be left alone, if it did.
        package var asked: Timestamp?
    }

    /// A delivery in the middle of its attempts.
    private struct Course {
        let delivery: OwedDelivery
        /// The attempts that are used up, without the one that is judged.
        let attempts: UInt16
        /// How many attempts in a row, just before this one, ended without an answer.
        let unanswered: Int
        let now: Timestamp

        /// The attempts with the one that is judged.
        var attempt: UInt16 { attempts < .max ? attempts + 1 : .max }
    }

    /// Judges the end of an attempt of `delivery`.
    ///
    /// Only answers of the gateway use up attempts. What was not sent is none; one whose answer
    /// was lost is the first, if there was none before, and otherwise repeats the last. So errors
    /// of connections never fail a delivery by themselves: it waits until it expires.
    ///
    /// - Parameters:
    ///   - outcome: How the attempt ended.
    ///   - delivery: Whose attempt it was.
    ///   - attempts: The attempts that are used up before.
    ///   - unanswered: How many attempts in a row, just before this one, ended without an answer.
    ///   - now: The moment.
    ///   - generator: Spreads what is tried again.
    /// - Returns: What becomes of the delivery, and who waits besides.
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
            // Its container waits as a whole: so the delivery's own wait is the back-off, and ends
            // with the halt, whoever ends that.
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

    /// A delivery that waits for somebody else's mistake to be mended has not used up an attempt.
    private func paused(
        _ scope: Halt.Scope, _ course: Course, _ refusal: GatewayRefusal
    ) -> Verdict {
        let pause = refusal.trialAfter ?? pause
        // It is due, and lies in a lane that is halted: so it goes at once when the halt ends.
        return Verdict(
            resolution: waiting(
                course.delivery, attempts: course.attempts, until: course.now,
                status: UInt16(clamping: refusal.status), reason: .said(refusal.reason),
                at: course.now),
            halt: Halt(
                scope: scope, until: course.now.advanced(by: pause), pause: pause,
                reason: refusal.reason))
    }

    /// The halt of a gateway that asks to be left alone: as long as it says, but it is tried
    /// before, because nobody knows whether it meant that.
    private func asked(
        _ wish: Duration, _ refusal: GatewayRefusal, _ environment: GatewayEnvironment,
        at now: Timestamp
    ) -> Halt {
        let wish = min(wish, retries.longestWish)
        let pause = min(wish, Halts.firstTrial)
        return Halt(
            scope: .gateway(environment), until: now.advanced(by: pause), pause: pause,
            reason: "the gateway asks to be left alone: \(refusal.status) \(refusal.reason)",
            asked: now.advanced(by: wish))
    }

    // MARK: Deadlines

    /// How long a notification that was to expire at once is tried to be sent for the first time.
    package static let atOnceBound = Duration.seconds(3600)

    /// When a delivery is given up, if ever; `attempts` are used up.
    ///
    /// A notification that was to expire at once is owed one send, as APNs has it: until something
    /// of it may have reached the gateway it has ``atOnceBound``.
    private func deadline(of delivery: OwedDelivery, attempts: UInt16) -> Timestamp? {
        let delivery = delivery.delivery
        guard let expiration = delivery.notification.expiration else { return nil }
        guard attempts == 0, expiration <= delivery.appendedAt else { return expiration }
        return delivery.appendedAt.advanced(by: Self.atOnceBound)
    }

    /// What becomes of a delivery whose notification expired before it could be sent; `nil` if it
    /// may be sent.
    package func ending(
        ofUnsent delivery: OwedDelivery, attempts: UInt16, _ reason: WaitReason?, at now: Timestamp
    ) -> Resolution? {
        guard let deadline = deadline(of: delivery, attempts: attempts), deadline <= now else {
            return nil
        }
        return expired(delivery, attempts, status: 0, reason: reason?.cause ?? "", now)
    }

    /// What becomes of a delivery that must wait until `until`, and of one that would then have
    /// expired.
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

    /// Whether a delivery that was not sent may still be sent at `moment`.
    package func lasts(_ delivery: OwedDelivery, until moment: Timestamp) -> Bool {
        deadline(of: delivery, attempts: 0).map { moment < $0 } ?? true
    }

    /// How long something is held at most that never expires.
    package static let longestHold = Duration.seconds(30 * 86_400)

    /// What becomes of a delivery that is held back, and of one that will have expired by then.
    ///
    /// What is held until somebody says so is looked at again when it expires; what is told
    /// together when that is told, which may be sooner.
    package func held(
        _ delivery: OwedDelivery, attempts: UInt16, _ hold: HoldRules.Hold, at now: Timestamp
    ) -> Resolution {
        let reason = WaitReason.held(hold.reason)
        let deadline = deadline(of: delivery, attempts: attempts)
        if let deadline, let until = hold.until, deadline <= until, !hold.reason.isTogether {
            return expired(delivery, attempts, status: 0, reason: reason.text, now)
        }
        var retry = Retry(
            delivery: delivery, attempts: attempts,
            dueAt: hold.until ?? deadline ?? now.advanced(by: Self.longestHold), reason: reason)
        retry.judgedBy = delivery.kindness.map { JudgedVersions($0) }
        return Resolution(retry: retry, status: 0, at: now, .held)
    }

    // MARK: Again

    /// The gateway answered, and may answer otherwise later.
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

    /// The gateway will take it on another connection or with another token, which is there
    /// already: the first time in a row that is no attempt, and waits for nothing.
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
                // What was not sent is no attempt.
                attempts: refusal.status == 0 ? course.attempts : course.attempt,
                status: UInt16(clamping: refusal.status), reason: reason, at: course.now),
            deadToken: token, ending)
    }

    private func expired(
        _ delivery: OwedDelivery, _ attempts: UInt16, status: UInt16, reason: String,
        _ now: Timestamp
    ) -> Resolution {
        Resolution(
            deadLetter: DeadLetter(
                delivery: delivery, attempts: attempts, status: status,
                reason: DeliveryBound.expiration.reason(reason), at: now), .expired)
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
