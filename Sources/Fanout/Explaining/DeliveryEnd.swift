import RelayModel

/// Why a delivery ended without success, for people: the gateway refused it, or what bounds every
/// delivery ended it after an answer that was no refusal.
struct DeliveryEnd {
    private let reason: String
    private let status: UInt16
    /// What bounded it, and what had failed last.
    private let bound: (bound: DeliveryBound, cause: String)?

    /// The end of a delivery by the reason and status of its dead letter, or of its last receipt.
    init(_ reason: String, status: UInt16) {
        self.reason = reason
        self.status = status
        guard case .redriven(let bound, let cause) = WaitReason(stored: reason) else {
            self.bound = nil
            return
        }
        self.bound = (bound, cause)
    }

    /// The end as a part of a sentence.
    var says: String {
        guard status > 0 else { return "it was not delivered: \(reason)" }
        guard let bound else { return "the gateway refused it: \(status) \(reason)" }
        return "\(bound.bound.says) before it was delivered; the gateway's last answer was "
            + "\(status) \(bound.cause)"
    }

    /// The end of another delivery, after "which".
    var saysOfOther: String {
        guard status > 0 else { return "was not delivered: \(reason)" }
        guard let bound else { return "the gateway refused: \(status) \(reason)" }
        return "was not delivered: \(bound.bound.rawValue), after \(status) \(bound.cause)"
    }

    /// The answer of the gateway that the end came with.
    var answer: String {
        bound.map { "\(status) \($0.cause), and \($0.bound.says)" } ?? "\(status) \(reason)"
    }
}

private extension DeliveryBound {
    /// What it did, as a part of a sentence.
    var says: String {
        switch self {
        case .expiration: "it expired"
        case .attempts: "its attempts were used up"
        }
    }
}

extension DeliveryReceipt {
    /// Why it was held back for its recipient's sake; `nil` if it was not.
    var hold: HoldReason? {
        outcome == .deferred ? WaitReason(stored: reason).hold : nil
    }

    /// The attempt, for people.
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
