import PredicateLanguage
import RegularExpressions
package import RelayModel

/// The reference evaluator run on every subscription: the answer that the index must give, found
/// slowly.
///
/// It is used to compare the two, in `belfry match --engine reference` and in benchmarks.
package struct ReferenceScan {
    private let subscriptions: [(IndexedSubscription, PreparedPredicate?)]

    /// Prepares the predicates of `subscriptions`; answers keep their order.
    ///
    /// - Throws: `PredicateError` if a predicate cannot be prepared.
    package init(_ subscriptions: [IndexedSubscription]) throws {
        self.subscriptions = try subscriptions.map {
            ($0, try $0.predicate.map { try PreparedPredicate($0) })
        }
    }

    /// Replaces `serials` by the serials of the subscriptions that `change` fires.
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

    /// Returns whether a predicate holds on a change, whatever the values of unknown fields are.
    private static func holds(_ prepared: PreparedPredicate, on change: RecordChange) -> Bool {
        let now = change.occurredAt
        let judged = prepared.predicate.judged(change, at: now)
        // The prepared predicate may be used only if every field is known.
        return judged.predicate == prepared.predicate
            ? prepared.evaluate(on: judged.fields, now: now) == .true
            : judged.predicate.evaluate(on: judged.fields, now: now) == .true
    }
}
