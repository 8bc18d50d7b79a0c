import RelayModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PredicateExpressions.Conjunction: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        let left = PredicateCondition(try translation.node(lhs))
        return (left && PredicateCondition(try translation.node(rhs))).node
    }
}

extension PredicateExpressions.Disjunction: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        let left = PredicateCondition(try translation.node(lhs))
        return (left || PredicateCondition(try translation.node(rhs))).node
    }
}

extension PredicateExpressions.Negation: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        .not(try translation.node(wrapped))
    }
}

extension PredicateExpressions.Equal: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        translation.compare(
            try translation.expression(lhs), .equal, try translation.expression(rhs))
    }
}

extension PredicateExpressions.NotEqual: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        translation.compare(
            try translation.expression(lhs), .notEqual, try translation.expression(rhs))
    }
}

extension PredicateExpressions.Comparison: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        let comparator: RecordPredicate.Comparator =
            switch op {
            case .lessThan: .less
            case .lessThanOrEqual: .lessOrEqual
            case .greaterThan: .greater
            case .greaterThanOrEqual: .greaterOrEqual
            @unknown default: .equal
            }
        return translation.compare(
            try translation.expression(lhs), comparator, try translation.expression(rhs))
    }
}

extension PredicateExpressions.SequenceContains: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        translation.compare(
            try translation.expression(element), .in, try translation.expression(sequence))
    }
}

extension PredicateExpressions.CollectionContainsCollection: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        guard Base.Output.self == String.self else {
            throw PredicateError(
                .check, "contains of a list in a list cannot be translated", found: "contains",
                expected: "contains of an element or a text")
        }
        return translation.compare(
            try translation.expression(base), .contains, try translation.expression(other))
    }
}

extension PredicateExpressions.SequenceStartsWith: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        guard Base.Output.self == String.self else {
            throw PredicateError(
                .check, "starts(with:) of a list cannot be translated", found: "starts(with:)",
                expected: "starts(with:) of a text")
        }
        return translation.compare(
            try translation.expression(base), .beginsWith, try translation.expression(prefix))
    }
}

extension PredicateExpressions.SequenceContainsWhere: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        translation.compare(
            try translation.count(sequence, variable.key, test, isNegated: false), .greater,
            .constant(.integer(0)))
    }
}

extension PredicateExpressions.SequenceAllSatisfy: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        translation.compare(
            try translation.count(sequence, variable.key, test, isNegated: true), .equal,
            .constant(.integer(0)))
    }
}

extension PredicateExpressions.RangeExpressionContains: FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node {
        let element = try translation.expression(element)
        guard let bounds = try (range as? any FoundationRange)?.bounds(translation) else {
            throw PredicateError(
                .check, "this range cannot be translated", found: "\(RangeExpression.self)",
                expected: "a closed or half-open range of constants")
        }
        if bounds.isClosed {
            return translation.compare(element, .between, .list([bounds.lower, bounds.upper]))
        }
        return .and([
            translation.compare(element, .greaterOrEqual, bounds.lower),
            translation.compare(element, .less, bounds.upper),
        ])
    }
}

/// A range in a `#Predicate`.
protocol FoundationRange {
    func bounds(_ translation: FoundationTranslation) throws(PredicateError) -> FoundationBounds
}

/// The ends of a range.
struct FoundationBounds {
    let lower: RecordPredicate.Expression
    let upper: RecordPredicate.Expression
    /// Whether the range includes its upper end.
    let isClosed: Bool
}

extension PredicateExpressions.Range: FoundationRange {
    func bounds(_ translation: FoundationTranslation) throws(PredicateError) -> FoundationBounds {
        FoundationBounds(
            lower: try translation.expression(lower), upper: try translation.expression(upper),
            isClosed: false)
    }
}

extension PredicateExpressions.ClosedRange: FoundationRange {
    func bounds(_ translation: FoundationTranslation) throws(PredicateError) -> FoundationBounds {
        FoundationBounds(
            lower: try translation.expression(lower), upper: try translation.expression(upper),
            isClosed: true)
    }
}
