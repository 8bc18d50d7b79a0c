import Matching
import PredicateLanguage
import RelayModel

/// Explains what a subscription requires of the record: its condition, the transition that an
/// update must make, and the fields that must have changed.
///
/// Pure.
struct ConditionExplainer {
    let change: RecordChange
    let subscription: Subscription
    let indexed: IndexedSubscription
    let moment: Timestamp
    let trace: MissFinder.Trace

    /// Adds the steps, and returns whether the change passed all of them.
    func explain(_ explanation: inout Explanation) -> Bool {
        guard let predicate = indexed.predicate else {
            explanation.pass(.predicate, "the subscription has no condition")
            return true
        }
        let side = change.judgedSide
        let failures = failures(of: predicate, on: change)
        let narrows = change.operation == .update && subscription.narrowsUpdates
        let facts = facts(of: predicate, on: change, holds: failures.isEmpty)
        let holds = "the condition holds on the record as it was \(side.word) the change"
        guard narrows else {
            guard failures.isEmpty else {
                miss(failures, facts, &explanation)
                return false
            }
            explanation.pass(.predicate, holds, facts)
            return true
        }
        if failures.isEmpty {
            explanation.pass(.predicate, holds, facts)
        } else if subscription.firesWhen == .left {
            explanation.steps.append(
                ExplainedStep(.predicate, .noted, Self.phrase(failures), facts))
        } else {
            miss(failures, facts, &explanation)
            return false
        }
        return explainTransition(predicate, doesMatch: failures.isEmpty, &explanation)
    }

    private func failures(
        of predicate: RecordPredicate, on change: RecordChange
    ) -> [FailedComparison] {
        guard !holds(predicate, on: change) else { return [] }
        let found = ConditionFinder(at: moment, trace: trace).failures(of: predicate, on: change)
        return found.isEmpty
            ? [FailedComparison(asked: predicate.canonicalText, .unknown([]))] : found
    }

    private func holds(_ predicate: RecordPredicate, on change: RecordChange) -> Bool {
        let judged = predicate.judged(change, at: moment)
        return trace(judged.predicate, judged.fields, moment)?.outcome == .true
    }

    private func miss(
        _ failures: [FailedComparison], _ facts: JSONObject, _ explanation: inout Explanation
    ) {
        explanation.fail(.predicate, Self.phrase(failures), facts)
        // A condition that no record can satisfy is never a near miss.
        let isHopeless = failures.contains { $0.fault == .holdsForNothing }
        explanation.missedBy = isHopeless ? nil : failures.count
    }

    /// Describes the first comparison that fails, and counts the others that fail.
    private static func phrase(_ failures: [FailedComparison]) -> String {
        guard let first = failures.first else { return "" }
        let rest = failures.count - 1
        return first.pastText
            + (rest == 0 ? "" : "; \(rest) more \(rest == 1 ? "part fails" : "parts fail")")
    }

    // MARK: Updates

    private func explainTransition(
        _ predicate: RecordPredicate, doesMatch: Bool, _ explanation: inout Explanation
    ) -> Bool {
        // The before image is judged in the same way as that of a deletion.
        var earlier = change
        earlier.operation = .delete
        let didMatch = change.before != nil && holds(predicate, on: earlier)
        let fields = predicate.fieldsRead
        let rule = UpdateRules.Rule(
            firesWhen: subscription.firesWhen, changedKeys: subscription.changedKeys,
            fields: fields)
        let word = subscription.firesWhen
        if word != .matches {
            let fits = UpdateRules.Rule(firesWhen: word, changedKeys: [], fields: fields)
                .fires(by: change, didMatch: didMatch, doesMatch: doesMatch)
            let matched = known(didMatch, predicate, rule, .before, of: earlier)
            var facts: JSONObject = ["firesWhen": .string(word.rawValue)]
            facts["matchedBefore"] = matched.map { .bool($0) }
            facts["matchesAfter"] = known(doesMatch, predicate, rule, .after, of: change).map {
                .bool($0)
            }
            if change.before != nil {
                facts["before"] = .object(
                    self.facts(of: predicate, on: earlier, holds: didMatch))
            }
            let text = transitionText(matched: matched, doesMatch: doesMatch, fits: fits)
            guard fits else {
                explanation.fail(.transition, text, facts)
                return false
            }
            explanation.pass(.transition, text, facts)
        }
        return explainChangedKeys(
            rule, didMatch: didMatch, doesMatch: doesMatch, &explanation)
    }

    /// Returns what the condition said about an image.
    ///
    /// Returns `nil` if the image shows too little to know that it did not match. The walk treats
    /// that case as not matching.
    private func known(
        _ doesMatch: Bool, _ predicate: RecordPredicate, _ rule: UpdateRules.Rule,
        _ side: ImageSide, of judged: RecordChange
    ) -> Bool? {
        if doesMatch { return true }
        let isKnown =
            rule.isDecided(by: change, side)
            || holds(RecordPredicate(.not(predicate.root)), on: judged)
        return isKnown ? false : nil
    }

    private func transitionText(matched: Bool?, doesMatch: Bool, fits: Bool) -> String {
        let asked =
            switch subscription.firesWhen {
            case .matches: "that match"
            case .entered: "that begin to match"
            case .left: "that cease to match"
            case .stayed: "that matched and still match"
            }
        let asks = "the subscription asks for records \(asked)"
        guard change.before != nil else {
            return "the change does not show the record as it was before, and \(asks)"
        }
        if !fits, let matched, matched == (subscription.firesWhen == .entered) {
            return "the record \(matched ? "already matched before" : "did not match before"), "
                + "and \(asks)"
        }
        if !fits, matched != nil, subscription.firesWhen == .left, doesMatch {
            return "the record still matches, and \(asks)"
        }
        guard fits else {
            return "the change does not show all fields that the condition reads, and \(asks)"
        }
        return "the record \(matched == true ? "matched" : "did not match") before and "
            + "\(doesMatch ? "matches" : "does not match") after, and \(asks)"
    }

    private func explainChangedKeys(
        _ rule: UpdateRules.Rule, didMatch: Bool, doesMatch: Bool,
        _ explanation: inout Explanation
    ) -> Bool {
        let keys = subscription.changedKeys
        guard !keys.isEmpty else { return true }
        let changed = keys.filter { change.changes(field: $0) }
        let facts: JSONObject = [
            "changedKeys": .array(keys.map { .string($0) }),
            "changed": .array(changed.map { .string($0) }),
        ]
        guard rule.fires(by: change, didMatch: didMatch, doesMatch: doesMatch) else {
            let isShown = change.changedKeys != nil || change.before != nil
            explanation.fail(
                .changedKeys,
                (isShown
                    ? "the update did not change \(keys.orList)"
                    : "the change does not show the record as it was before, nor what changed")
                    + ", and the subscription asks for that", facts)
            return false
        }
        explanation.pass(.changedKeys, "the update changed \(changed.andList)", facts)
        return true
    }

    // MARK: What was looked at

    /// Returns the condition with each comparison that was reached: its place in the canonical
    /// text, both values, and whether it decided.
    private func facts(
        of predicate: RecordPredicate, on change: RecordChange, holds: Bool
    ) -> JSONObject {
        let text = predicate.canonicalText
        var facts: JSONObject = [
            "canonicalPredicate": .string(text), "judged": .string(change.judgedSide.word),
            "holds": .bool(holds),
        ]
        if change.judgedImage == nil {
            facts["unknown"] = true
            if !holds { return facts }
        }
        let judged = predicate.judged(change, at: moment)
        let traced = trace(judged.predicate, judged.fields, moment)
        facts["comparisons"] = .array(
            traced.map { shown($0, of: predicate, judged.predicate, judged.fields) } ?? [])
        if let read = predicate.fieldsRead, judged.predicate != predicate {
            let unknown = read.filter { judged.fields[$0] == nil }.sorted()
            facts["unknownFields"] = .array(unknown.map { .string($0) })
        }
        return facts
    }

    /// Returns the comparisons of a trace with their places, and whether they decided.
    private func shown(
        _ trace: EvaluationTrace, of predicate: RecordPredicate, _ judged: RecordPredicate,
        _ fields: RecordFields
    ) -> [JSONValue] {
        let decision = ConditionDecision(of: predicate, judgedAs: judged, trace)
        let decided = Set(decision.decided)
        let places = predicate.comparisonPlaces
        return trace.comparisons.prefix(Self.mostComparisons).enumerated().map { index, step in
            var object = step.shown(
                at: decision.numbers[index].map { places[$0] }, of: fields)
            object["decides"] = .bool(decided.contains(index))
            return .object(object)
        }
    }

    /// The maximum number of comparisons that are shown for one condition.
    private static let mostComparisons = 100
}

private extension ImageSide {
    var word: String { self == .before ? "before" : "after" }
}
