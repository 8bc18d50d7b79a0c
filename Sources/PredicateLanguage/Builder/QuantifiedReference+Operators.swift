import RelayModel

extension QuantifiedReference {
    /// A comparison of each element, by any of the tree's comparators.
    public func compare(
        _ comparator: RecordPredicate.Comparator, _ other: some PredicateOperand,
        _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        PredicateCondition(
            .comparison(
                RecordPredicate.Comparison(
                    expression, comparator, other.predicateExpression, options: options,
                    quantifier: quantifier)))
    }

    /// Equal.
    public static func == (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.equal, right)
    }

    /// Not equal.
    public static func != (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.notEqual, right)
    }

    /// Has no value.
    public static func == (left: Self, right: NilLiteral) -> PredicateCondition {
        left.compare(.equal, FieldValue.null)
    }

    /// Has a value.
    public static func != (left: Self, right: NilLiteral) -> PredicateCondition {
        left.compare(.notEqual, FieldValue.null)
    }

    /// Less.
    public static func < (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.less, right)
    }

    /// Less or equal.
    public static func <= (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.lessOrEqual, right)
    }

    /// Greater.
    public static func > (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.greater, right)
    }

    /// Greater or equal.
    public static func >= (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.greaterOrEqual, right)
    }

    /// Is one of the elements of another list.
    public func isIn(
        _ list: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.in, list, options)
    }

    /// Has the part.
    public func contains(
        _ other: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.contains, other, options)
    }

    /// Begins with the text.
    public func beginsWith(
        _ other: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.beginsWith, other, options)
    }
}
