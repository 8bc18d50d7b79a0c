import PredicateLanguage
import RelayModel

extension SubscriptionWarnings {
    /// Returns a warning if the condition requires that the moment of a change is another one.
    ///
    /// After a creation or an update, `modificationDate` and `now()` are both the moment of that
    /// change. Before it, `modificationDate` is an earlier one.
    static func ofOneMoment(
        _ subscription: Subscription, _ predicate: RecordPredicate
    ) -> [PredicateWarning] {
        guard !subscription.firesOn.contains(.delete), subscription.firesWhen != .left,
            conjuncts(of: predicate.root).contains(where: isOfOneMoment)
        else { return [] }
        return [
            PredicateWarning(
                .neverTrue,
                "after a creation or an update, the modification date and now() are the same: the "
                    + "moment of the change",
                hint: "compare the date with a fixed one")
        ]
    }

    /// Returns the comparisons that all must hold.
    private static func conjuncts(
        of node: RecordPredicate.Node
    ) -> [RecordPredicate.Comparison] {
        switch node {
        case .comparison(let comparison): [comparison]
        case .and(let nodes): nodes.flatMap { conjuncts(of: $0) }
        default: []
        }
    }

    private static func isOfOneMoment(_ comparison: RecordPredicate.Comparison) -> Bool {
        guard comparison.quantifier == nil, comparison.rightQuantifier == nil,
            [.less, .greater, .notEqual].contains(comparison.comparator)
        else { return false }
        let (left, right) = (comparison.left, comparison.right)
        return isModification(left) && isNow(right) || isNow(left) && isModification(right)
    }

    private static func isModification(_ side: RecordPredicate.Expression) -> Bool {
        guard case .path(let path) = side, let name = path.fieldName else { return false }
        return SystemField(named: name) == .modificationDate
    }

    private static func isNow(_ side: RecordPredicate.Expression) -> Bool {
        if case .call(.now, _) = side { true } else { false }
    }
}
