import RelayModel

/// Why a delivery ended without success, for a human reader: the gateway refused it, or a bound of
/// every delivery ended it after an answer that was not a refusal.
struct DeliveryEnd {
    private let reason: String
    private let status: UInt16
    /// The bound that ended the delivery, and the cause of the last failed attempt.
    private let bound: (bound: DeliveryBound, cause: String)?

    /// Reads the end of a delivery from the reason and status of its dead letter or last receipt.
    init(_ reason: String, status: UInt16) {
        self.reason = reason
        self.status = status
        guard case .redriven(let bound, let cause) = WaitReason(stored: reason) else {
            self.bound = nil
            return
        }
        self.bound = (bound, cause)
    }

    /// The end as a clause.
    var says: String {
        guard status > 0 else { return "it was not delivered: \(reason)" }
        guard let bound else { return "the gateway refused it: \(status) \(reason)" }
        return "\(bound.bound.says) before it was delivered; the gateway's last answer was "
            + "\(status) \(bound.cause)"
    }

    /// The end of another delivery, as the rest of a clause that begins with "which".
    var saysOfOther: String {
        guard status > 0 else { return "was not delivered: \(reason)" }
        guard let bound else { return "the gateway refused: \(status) \(reason)" }
        return "was not delivered: \(bound.bound.rawValue), after \(status) \(bound.cause)"
    }

    /// The gateway's last answer, with the bound that ended the delivery if one did.
    var answer: String {
        bound.map { "\(status) \($0.cause), and \($0.bound.says)" } ?? "\(status) \(reason)"
    }
}

private extension DeliveryBound {
    /// What the bound did to the delivery, as a clause.
    var says: String {
        switch self {
        case .expiration: "it expired"
        case .attempts: "its attempts were used up"
        }
    }
}

extension DeliveryReceipt {
    /// Why the delivery was held back for its recipient's sake, or `nil` if it was not.
    var hold: HoldReason? {
        outcome == .deferred ? WaitReason(stored: reason).hold : nil
    }

    /// The attempt in words.
    var says: String {
        let moment = at.iso8601Seconds
        return switch outcome {
        case .accepted: "attempt \(attempt): accepted, \(moment)"
        case _ where status == 0: "not sent or not answered, \(moment): \(reason)"
        default:
            "attempt \(attempt): \(DeliveryEnd(reason, status: status).answer), \(moment)"
        }
    }
}
