import Gateway

/// How one attempt ended, whatever happened to its delivery.
package enum AttemptEnd: String, Sendable, Hashable, CaseIterable {
    /// The gateway accepted the push.
    case accepted
    /// The gateway refused the push.
    case refused
    /// The answer was lost.
    case unknown
    /// The push was not sent.
    case notSent

    init(_ outcome: PushOutcome) {
        self =
            switch outcome {
            case .accepted: .accepted
            case .refused: .refused
            case .unknown: .unknown
            case .notSent: .notSent
            }
    }
}
