import Matching
package import PredicateLanguage
package import RelayModel

/// Finds out why a change did not fire a subscription, for a human reader.
///
/// The index finds only the subscriptions that fire, and says nothing about the others. This type
/// checks one subscription after the other, slowly. Pure.
package struct MissFinder: Sendable {
    /// Evaluates a predicate on fields at a moment, and returns the trace.
    ///
    /// Returns `nil` if the predicate cannot be evaluated.
    package typealias Trace =
        @Sendable (RecordPredicate, RecordFields, Timestamp) -> EvaluationTrace?

    private let change: RecordChange
    private let moment: Timestamp
    private let trace: Trace

    /// Creates a finder for one change.
    package init(of change: RecordChange, appendedAt: Timestamp, trace: @escaping Trace) {
        self.change = change
        moment = change.occurredAt ?? appendedAt
        self.trace = trace
    }

    /// Returns what the subscription requires and the change does not have, in the order in which
    /// it is checked.
    ///
    /// The result is empty if nothing is found, for example because the subscription was fired.
    package func misses(of subscription: Subscription) -> [String] {
        place(subscription) + operation(subscription) + readers(subscription)
            + condition(subscription)
    }

    // MARK: What is asked beside the condition

    private func place(_ subscription: Subscription) -> [String] {
        guard subscription.database == change.database else {
            return [
                "it is in the \(change.database.rawValue) database, but the subscription asks "
                    + "for the \(subscription.database.rawValue) one"
            ]
        }
        if change.database != .public, subscription.owner != change.owner {
            return ["it is not in \(subscription.owner)'s own database"]
        }
        guard let zone = subscription.zoneID, zone != change.recordID.zoneID else { return [] }
        return [
            "it is in the zone \(change.recordID.zoneID.words), but the subscription asks for "
                + zone.words
        ]
    }

    private func operation(_ subscription: Subscription) -> [String] {
        guard !subscription.firesOn.contains(FiresOn(change.operation)) else { return [] }
        let asked = subscription.firesOn.operations.map { "\($0.noun)s" }
        let found = change.operation == .update ? "an update" : "a \(change.operation.noun)"
        return ["it is \(found), but the subscription asks for \(asked.andList) only"]
    }

    private func readers(_ subscription: Subscription) -> [String] {
        change.mayTell(subscription) ? [] : ["\(subscription.owner) may not read it"]
    }

    // MARK: The condition

    private func condition(_ subscription: Subscription) -> [String] {
        guard case .query(let query, _) = subscription.scope else { return [] }
        let owner = subscription.database.impliedOwner(subscription.owner)
        guard let predicate = try? query.recordPredicate(implying: owner) else {
            return ["its condition cannot be read"]
        }
        let misses = failures(of: predicate.root, on: change)
        guard change.operation == .update, subscription.narrowsUpdates else { return misses }
        var earlier = change
        // The before image is judged in the same way as that of a deletion.
        earlier.operation = .delete
        let didMatch =
            change.before != nil && failures(of: predicate.root, on: earlier).isEmpty
        let rule = UpdateRules.Rule(
            firesWhen: subscription.firesWhen, changedKeys: subscription.changedKeys,
            fields: predicate.fieldsRead)
        guard !rule.fires(by: change, didMatch: didMatch, doesMatch: misses.isEmpty) else {
            return []
        }
        let isKnown = didMatch || rule.isDecided(by: change, .before)
        let narrower = updates(subscription, misses, didMatch: didMatch, isKnown: isKnown)
        return narrower.isEmpty ? ["it does not show whether the record matched before"] : narrower
    }

    /// Returns what an update lacks of `firesWhen` and `changedKeys`.
    private func updates(
        _ subscription: Subscription, _ misses: [String], didMatch: Bool, isKnown: Bool
    ) -> [String] {
        let unmatched =
            isKnown
            ? "it did not match before" : "it does not show whether the record matched before"
        let asks = "the subscription asks for records that"
        var found: [String]
        switch subscription.firesWhen {
        case .matches: found = misses
        case .entered:
            found = misses
            if didMatch { found.append("it matched before, but \(asks) begin to match") }
        case .stayed:
            found = misses
            if !didMatch { found.append("\(unmatched), but \(asks) matched before") }
        case .left:
            found = didMatch ? [] : ["\(unmatched), but \(asks) cease to match"]
            if misses.isEmpty { found.append("it still matches, but \(asks) cease to match") }
        }
        let keys = subscription.changedKeys
        if !keys.isEmpty, !keys.contains(where: { change.changes(field: $0) }) {
            found.append("it does not show a new value of \(keys.orList)")
        }
        return found
    }

    /// Describes the comparisons that fail.
    private func failures(
        of node: RecordPredicate.Node, on change: RecordChange
    ) -> [String] {
        ConditionFinder(at: moment, trace: trace).failures(of: node, on: change).map(\.text)
    }
}

extension ChangeOperation {
    /// The operation as a noun.
    var noun: String {
        switch self {
        case .create: "creation"
        case .update: "update"
        case .delete: "deletion"
        }
    }
}

extension [String] {
    /// The elements as a list, for example "a, b or c".
    var orList: String { list("or") }
    /// The elements as a list, for example "a, b and c".
    var andList: String { list("and") }

    private func list(_ word: String) -> String {
        guard count > 1, let last else { return first ?? "" }
        return dropLast().joined(separator: ", ") + " \(word) " + last
    }
}
