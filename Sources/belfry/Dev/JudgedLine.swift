import Fanout
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// One line of text about a change.
struct JudgedLine {
    let judged: JudgedChange
    let change: RecordChange
    /// The active subscriptions that a change of its type may fire.
    let subscriptions: [SubscriptionVersion]
    /// Whether `subscriptions` is complete.
    let areAll: Bool

    /// Returns the line about an unreadable change.
    static func unreadable(_ judged: JudgedChange) -> String {
        "the change at \(judged.position): fired nothing; it cannot be read"
    }

    private var name: String {
        "\(change.recordType)/\(change.recordID.recordName)"
    }

    /// The line, such as "Todo/t2: fired 0 of 3; nearest: priority is a text, asks for priority > 2
    /// (urgent-todos of alice)".
    var text: String {
        switch judged.verdict {
        case .stale: "\(name): fired nothing; a newer version of it was applied before"
        case .setAside(let reason): "\(name): set aside; \(reason)"
        case .judged where change.forgetsType:
            "\(change.recordType): its records are no longer kept"
        case .judged where change.isSnapshot: "\(name): fired nothing; it is a row of a snapshot"
        case .judged: "\(name): \(count)\(firedNames)\(leftOut)\(nearest)"
        }
    }

    private var count: String {
        // A once subscription is no longer active after it fired.
        let others = judged.fired.count { fired in
            !subscriptions.contains { $0.serial == fired.serial }
        }
        let all = max(subscriptions.count + others, judged.firedCount)
        guard all > 0 else {
            return "fired 0; nobody has a subscription to \(change.recordType)"
        }
        return "fired \(judged.firedCount) of \(all)\(areAll ? "" : " or more")"
    }

    private var firedNames: String {
        guard !judged.fired.isEmpty else { return "" }
        let named = judged.fired.prefix(5).map(\.id.rawValue)
        let rest = judged.firedCount - named.count
        return ": " + named.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
    }

    private var leftOut: String {
        let devices = Set(judged.leftOut.map(\.deviceID)).count
        switch devices {
        case 0: return ""
        case 1: return "; 1 device got no push, because it made the change"
        default: return "; \(devices) devices got no push, because they made the change"
        }
    }

    /// The subscription with the fewest failing comparisons, and the first of these.
    private var nearest: String {
        guard judged.firedCount == 0 else { return "" }
        let finder = MissFinder(of: change, appendedAt: judged.appendedAt) {
            predicate, fields, moment in
            try? PreparedPredicate(predicate).trace(onValue: .map(fields), now: moment)
        }
        let asked = subscriptions.map { ($0.subscription, finder.misses(of: $0.subscription)) }
            .filter { !$0.1.isEmpty }
        guard let (subscription, misses) = asked.min(by: { $0.1.count < $1.1.count }),
            let first = misses.first
        else { return "" }
        return "; nearest: \(first) (\(subscription.id) of \(subscription.owner))"
    }
}
