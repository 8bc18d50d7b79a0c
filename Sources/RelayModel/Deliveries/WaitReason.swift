/// Why a delivery waits to be tried again.
///
/// The reason is stored as words that an operator can read (``stored``). Only ``init(stored:)``
/// turns them back into cases.
package enum WaitReason: Sendable, Hashable {
    /// What the gateway or the connection reported, about this delivery or about the halt that
    /// holds it.
    case said(String)
    /// The first attempt has not been answered yet.
    case noAnswerYet
    /// The gateway asked to send this device nothing for a while.
    case deviceHold
    /// The device has had its background pushes of this hour, and the delivery has a place in a
    /// later hour.
    case devicePace
    /// The delivery is held back for its recipient's sake.
    case held(HoldReason)
    /// The delivery stands for others that were held back with it, and it is due now.
    case together
    /// The delivery had ended by a bound and was redriven; `cause` is the last failure, or empty.
    case redriven(after: DeliveryBound, cause: String)

    /// Whether the delivery waits because its device may not be sent more at the moment.
    package var isPace: Bool {
        switch self {
        case .deviceHold, .devicePace: true
        case .said, .noAnswerYet, .held, .together, .redriven: false
        }
    }

    /// Whether the wait is intended: for the recipient, for the pace of the device, or by a
    /// redrive.
    package var isWanted: Bool {
        switch self {
        case .deviceHold, .devicePace, .held, .together, .redriven: true
        case .said, .noAnswerYet: false
        }
    }

    /// Why the delivery is held back for its recipient's sake; `nil` if it is not.
    package var hold: HoldReason? {
        guard case .held(let reason) = self else { return nil }
        return reason
    }

    /// The last failure, without the bound that had ended the delivery before.
    package var cause: String {
        guard case .redriven(_, let cause) = self else { return text }
        return cause
    }

    /// The reason in words.
    package var text: String {
        switch self {
        case .said(let text): text
        case .noAnswerYet: Words.noAnswerYet
        case .deviceHold: Words.deviceHold
        case .devicePace: Words.devicePace
        case .held(let reason): Words.held + reason.words
        case .together: Words.together
        case .redriven(let bound, let cause): bound.reason(cause)
        }
    }
}

/// A bound that ends a delivery which could otherwise be tried again.
package enum DeliveryBound: String, Sendable, Hashable, CaseIterable {
    /// The expiration of the notification.
    case expiration = "expired"
    /// The maximum number of attempts that the gateway answers.
    case attempts = "attempts used up"

    /// Returns the reason of a dead letter: the bound and the last failure.
    package func reason(_ cause: String) -> String {
        cause.isEmpty ? rawValue : "\(rawValue): \(cause)"
    }
}

// MARK: Stored form

extension WaitReason {
    /// Rows store these words, so they must never change.
    private enum Words {
        static let noAnswerYet = "no answer yet"
        static let deviceHold = "too many pushes for this device"
        static let held = "held: "
        static let together = "those that were held are told together"
        static let devicePace = "enough background pushes for this device in this hour"
    }

    /// Reads the stored form; every text is a valid one.
    package init(stored text: String) {
        switch text {
        case Words.noAnswerYet: self = .noAnswerYet
        case Words.deviceHold: self = .deviceHold
        case Words.devicePace: self = .devicePace
        case Words.together: self = .together
        default:
            self =
                Self.held(text) ?? Self.redriven(text) ?? .said(Self.unquoted(text) ?? text)
        }
    }

    /// The stored form, which ``init(stored:)`` reads as the same reason.
    package var stored: String {
        guard case .said(let text) = self, WaitReason(stored: text) != self else { return text }
        // A gateway's text may equal one of the relay's own phrases; quotation marks tell it apart.
        return "\"\(text)\""
    }

    private static func held(_ text: String) -> WaitReason? {
        guard text.hasPrefix(Words.held) else { return nil }
        let words = text.dropFirst(Words.held.count)
        return HoldReason.allCases.first { $0.words == words }.map { .held($0) }
    }

    /// Rows of earlier versions may name several bounds; the first one counts.
    private static func redriven(_ text: String) -> WaitReason? {
        var cause = text[...]
        var first: DeliveryBound?
        while let bound = DeliveryBound.allCases.first(where: { $0.begins(cause) }) {
            first = first ?? bound
            cause = cause.dropFirst(bound.rawValue.count + 2)
        }
        return first.map { .redriven(after: $0, cause: String(cause)) }
    }

    /// Returns the text inside quotation marks if it would be read as another case without them.
    private static func unquoted(_ text: String) -> String? {
        guard text.count > 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return nil }
        let inner = String(text.dropFirst().dropLast())
        return WaitReason(stored: inner) == .said(inner) ? nil : inner
    }
}

extension DeliveryBound {
    /// Returns whether `reason` begins with this bound.
    func begins(_ reason: Substring) -> Bool {
        reason == rawValue || reason.hasPrefix("\(rawValue): ")
    }
}
