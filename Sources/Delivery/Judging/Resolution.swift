package import RelayModel
package import Storage

/// How a settled delivery ended, for the metrics.
package enum SettledEnding: String, Sendable, Hashable, CaseIterable {
    /// The gateway accepted it.
    case accepted
    /// It is tried again after its back-off.
    case retried
    /// It waits for something else than its own back-off: a halt, its device, a fresh connection.
    case waiting
    /// It is held back for its recipient's sake.
    case held
    /// It was not sent, because its device was told over its connection.
    case seen
    /// Its answer is slow.
    ///
    /// It is settled as a retry, and again when the answer comes.
    case adopted
    /// Its device token was declared dead by the answer.
    case unregistered
    /// The gateway refused it for good.
    case refused
    /// The gateway answered as many attempts as a delivery may have.
    case exhausted
    /// Its notification expired before the relay could send it.
    case expired
    /// Its notification expired while it was held back for its recipient's sake.
    case expiredHeld
    /// A newer change of the record replaced it.
    case superseded
    /// It was not sent, because its device token had been declared dead.
    case deadToken
    /// It was not sent, because it no longer belongs to its recipient.
    case withdrawn
}

/// The result of one attempt: a receipt, and the rows that must be written besides.
package struct Resolution: Sendable, Hashable {
    /// Where the attempt came from.
    enum Origin {
        /// It was the first, and the log owed it.
        case log
        /// A retry row owed it.
        case retry
    }

    private let container: ContainerKey
    private let receipt: DeliveryReceipt
    private let retry: Retry?
    private let deadLetter: DeadLetter?
    /// The token that must not be used again, if there is one.
    let deadToken: DeadToken?
    /// How the delivery ended.
    package let ending: SettledEnding
    /// The place that the push took in its subscription's throttle, until the place is durable.
    package var place: ThrottlePlace?

    /// Creates the resolution of a push that the gateway accepted.
    package init(accepted delivery: OwedDelivery, attempts: UInt16, at now: Timestamp) {
        container = delivery.delivery.container
        receipt = DeliveryReceipt(
            of: delivery, .accepted, status: 200, reason: "", attempt: attempts, at: now)
        retry = nil
        deadLetter = nil
        deadToken = nil
        ending = .accepted
    }

    /// Creates the resolution of a delivery that is not sent because its device was told over its
    /// connection.
    package init(seen delivery: OwedDelivery, attempts: UInt16, at now: Timestamp) {
        container = delivery.delivery.container
        receipt = DeliveryReceipt(
            of: delivery, .seen, status: 0, reason: "told over the device's connection",
            attempt: attempts, at: now)
        retry = nil
        deadLetter = nil
        deadToken = nil
        ending = .seen
    }

    /// Creates the resolution of a push that is tried again.
    ///
    /// `retry` already counts this attempt.
    package init(
        retry: Retry, status: UInt16, at now: Timestamp, _ ending: SettledEnding = .retried
    ) {
        container = retry.delivery.delivery.container
        receipt = DeliveryReceipt(
            of: retry.delivery, .deferred, status: status, reason: retry.reason.text,
            attempt: retry.attempts, at: now)
        self.retry = retry.decided(at: now)
        deadLetter = nil
        deadToken = nil
        self.ending = ending
    }

    /// Creates the resolution of a delivery that ended without success.
    ///
    /// With `deadToken`, the device token is forgotten as well.
    package init(
        deadLetter: DeadLetter, deadToken: DeadToken? = nil, _ ending: SettledEnding = .refused
    ) {
        container = deadLetter.delivery.delivery.container
        receipt = DeliveryReceipt(
            of: deadLetter.delivery, deadToken == nil ? .dead : .unregistered,
            status: deadLetter.status, reason: deadLetter.reason, attempt: deadLetter.attempts,
            at: deadLetter.at)
        retry = nil
        self.deadLetter = deadLetter
        self.deadToken = deadToken
        self.ending = ending
    }

    /// How the attempt ended.
    package var outcome: DeliveryReceipt.Outcome { receipt.outcome }

    /// The number of the attempt in its receipt.
    var attempt: UInt16 { receipt.attempt }

    /// The reason in its receipt.
    var reason: String { receipt.reason }

    /// Why the delivery is held back, if it is.
    var hold: HoldReason? { retry?.reason.hold }

    /// The time of the next attempt, if there is one.
    package var dueAt: Timestamp? { retry?.dueAt }

    /// Writes this resolution into a step.
    func record(in step: inout SettledStep, origin: Origin) {
        step.receipts.append(receipt)
        // A retry was counted as owed when it was passed for the first time.
        if origin == .log { step.tallies[container, default: DeliveryTally()].owed += 1 }
        if receipt.outcome == .accepted {
            step.tallies[container, default: DeliveryTally()].delivered += 1
        }
        if receipt.outcome == .seen {
            step.tallies[container, default: DeliveryTally()].seen += 1
        }
        if let place { step.places.append(place) }
        if let retry { step.retries.append(retry) }
        if let deadLetter { step.deadLetters.append(deadLetter) }
        if let deadToken { step.deadTokens.append(deadToken) }
        if origin == .retry, retry == nil { step.endedRetries.append(receipt.deliveryID) }
    }
}

extension Retry {
    /// Returns the retry with the time at which its wait begins.
    func decided(at now: Timestamp) -> Retry {
        var retry = self
        retry.decidedAt = now
        return retry
    }
}

extension DeliveryReceipt {
    init(
        of delivery: OwedDelivery, _ outcome: Outcome, status: UInt16, reason: String,
        attempt: UInt16, at now: Timestamp
    ) {
        self.init(
            deliveryID: delivery.delivery.id, ordinal: delivery.delivery.ordinal,
            subscriptionSerial: delivery.subscriptionSerial, deviceSerial: delivery.deviceSerial,
            outcome: outcome, status: status, reason: reason, attempt: attempt, at: now)
    }
}
