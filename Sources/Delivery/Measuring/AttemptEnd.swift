import Gateway

/// How one attempt ended, whatever became of its delivery.
package enum AttemptEnd: String, Sendable, Hashable, CaseIterable {
    /// The gateway took the push.
    case accepted
    /// It refused it.
    case refused
    /// The answer is lost.
    case unknown
    /// It was not sent.
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
