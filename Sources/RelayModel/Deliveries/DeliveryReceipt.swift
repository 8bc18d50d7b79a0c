/// The record of one attempt.
package struct DeliveryReceipt: Sendable, Hashable {
    /// How an attempt ended.
    package enum Outcome: UInt8, Sendable, Hashable, CaseIterable {
        /// The gateway accepted the push.
        case accepted = 1
        /// The delivery will be tried again.
        case deferred = 2
        /// The device token is dead.
        case unregistered = 3
        /// The delivery became a dead letter.
        case dead = 4
        /// The relay sent no push, because the device was told over its connection.
        case seen = 5

        /// The word for the outcome in JSON.
        package var word: String {
            switch self {
            case .accepted: "accepted"
            case .deferred: "deferred"
            case .unregistered: "unregistered"
            case .dead: "dead"
            case .seen: "seen"
            }
        }
    }

    /// The delivery.
    package var deliveryID: DeliveryID
    /// The delivery's place in the log and in the fan-out of its change.
    package var ordinal: DeliveryOrdinal
    /// The serial of the subscription's version.
    package var subscriptionSerial: UInt64
    /// The serial of the device's version.
    package var deviceSerial: UInt64
    /// How the attempt ended.
    package var outcome: Outcome
    /// The gateway's status code; 0 if there was no answer.
    package var status: UInt16
    /// The reason of the gateway or the transport; empty if accepted.
    package var reason: String
    /// The number of the attempt, from 1.
    package var attempt: UInt16
    /// When the attempt ended.
    package var at: Timestamp

    package init(
        deliveryID: DeliveryID, ordinal: DeliveryOrdinal, subscriptionSerial: UInt64,
        deviceSerial: UInt64, outcome: Outcome, status: UInt16, reason: String, attempt: UInt16,
        at: Timestamp
    ) {
        self.deliveryID = deliveryID
        self.ordinal = ordinal
        self.subscriptionSerial = subscriptionSerial
        self.deviceSerial = deviceSerial
        self.outcome = outcome
        self.status = status
        self.reason = reason
        self.attempt = attempt
        self.at = at
    }
}
