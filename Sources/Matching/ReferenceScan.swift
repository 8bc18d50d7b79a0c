import PredicateLanguage
import RegularExpressions
package import RelayModel

/// The reference evaluator, subscription by subscription: what the index must answer, slowly.
///
/// It serves whoever compares the two: `belfry match --engine reference` and the benchmarks.
package struct ReferenceScan {
    private let subscriptions: [(IndexedSubscription, PreparedPredicate?)]

    /// Prepares the predicates of `subscriptions`, whose order becomes that of the answers.
    ///
    /// - Throws: `PredicateError` where a predicate cannot be prepared.
    package init(_ subscriptions: [IndexedSubscription]) throws {
        self.subscriptions = try subscriptions.map {
            ($0, try $0.predicate.map { try PreparedPredicate($0) })
        }
    }

    /// Replaces `serials` by those that `change` fires.
    package func matches(for change: RecordChange, into serials: inout [UInt64]) {
        serials.removeAll(keepingCapacity: true)
        for (subscription, predicate) in subscriptions {
            guard subscription.covers(change) else { continue }
            if let predicate {
                guard Self.holds(predicate, on: change) else { continue }
            }
            serials.append(subscription.serial)
        }
    }

    /// Whether a predicate holds on a change, whatever is unknown of it.
    private static func holds(_ prepared: PreparedPredicate, on change: RecordChange) -> Bool {
        let now = change.occurredAt
        let judged = prepared.predicate.judged(change, at: now)
        // The prepared form may only be used where every field is known.
        return judged.predicate == prepared.predicate
            ? prepared.evaluate(on: judged.fields, now: now) == .true
            : judged.predicate.evaluate(on: judged.fields, now: now) == .true
    }
}
