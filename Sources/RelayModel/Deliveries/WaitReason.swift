/// Why a delivery waits to be tried again.
///
/// It is stored as the words that an operator reads (``stored``); the cases are told apart by
/// ``init(stored:)`` and nowhere else.
package enum WaitReason: Sendable, Hashable {
    /// The gateway or the connection said it, of this delivery or of the halt that holds it.
    case said(String)
    /// Its first attempt has not been answered yet.
    case noAnswerYet
    /// The gateway wants its device to be left alone.
    case deviceHold
    /// Its device has had the background pushes of this hour; it has its place in a later one.
    case devicePace
    /// It is held back for its recipient's sake.
    case held(HoldReason)
    /// It stands for others that were held back with it, and its time has come.
    case together
    /// It had ended by a bound and was redriven; `cause` is what had failed last, if anything had.
    case redriven(after: DeliveryBound, cause: String)

    /// Whether it waits for the pace of its device.
    package var isPace: Bool {
        switch self {
        case .deviceHold, .devicePace: true
        case .said, .noAnswerYet, .held, .together, .redriven: false
        }
    }

    /// Whether somebody wants it to wait: its recipient, who paces its device, or who redrove it.
    package var isWanted: Bool {
        switch self {
        case .deviceHold, .devicePace, .held, .together, .redriven: true
        case .said, .noAnswerYet: false
        }
    }

    /// Why it is held back, if it is for its recipient's sake.
    package var hold: HoldReason? {
        guard case .held(let reason) = self else { return nil }
        return reason
    }

    /// What failed, without the bound by which the delivery ended before.
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

/// What ends a delivery that might be tried again.
package enum DeliveryBound: String, Sendable, Hashable, CaseIterable {
    /// Its notification's expiration.
    case expiration = "expired"
    /// The number of attempts that the gateway may answer.
    case attempts = "attempts used up"

    /// The reason of a dead letter: which bound it was, and what failed last.
    package func reason(_ cause: String) -> String {
        cause.isEmpty ? rawValue : "\(rawValue): \(cause)"
    }
}

// MARK: Stored form

extension WaitReason {
    /// The words stand in rows: they stay as they are forever.
    private enum Words {
        static let noAnswerYet = "no answer yet"
        static let deviceHold = "too many pushes for this device"
        static let held = "held: "
        static let together = "those that were held are told together"
        static let devicePace = "enough background pushes for this device in this hour"
    }

    /// Reads the stored form; any text is one.
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
        // A gateway may say what are our words.
        return "\"\(text)\""
    }

    private static func held(_ text: String) -> WaitReason? {
        guard text.hasPrefix(Words.held) else { return nil }
        let words = text.dropFirst(Words.held.count)
        return HoldReason.allCases.first { $0.words == words }.map { .held($0) }
    }

    /// Rows of earlier versions may name bounds more than once: the first of them counts.
    private static func redriven(_ text: String) -> WaitReason? {
        var cause = text[...]
        var first: DeliveryBound?
        while let bound = DeliveryBound.allCases.first(where: { $0.begins(cause) }) {
            first = first ?? bound
            cause = cause.dropFirst(bound.rawValue.count + 2)
        }
        return first.map { .redriven(after: $0, cause: String(cause)) }
    }

    /// What stands in quotation marks because it would be read as something else without them.
    private static func unquoted(_ text: String) -> String? {
        guard text.count > 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return nil }
        let inner = String(text.dropFirst().dropLast())
        return WaitReason(stored: inner) == .said(inner) ? nil : inner
    }
}

extension DeliveryBound {
    /// Whether a reason names the bound first.
    func begins(_ reason: Substring) -> Bool {
        reason == rawValue || reason.hasPrefix("\(rawValue): ")
    }
}
