public import RelayModel

/// The left side of a comparison: a field, an arithmetic expression, or a field under a quantifier.
public protocol PredicateSubject {
    /// The expression in the tree.
    var predicateExpression: RecordPredicate.Expression { get }
    /// The quantifier over the elements, or `nil` to compare the value itself.
    var quantifier: RecordPredicate.Quantifier? { get }
}

extension PredicateSubject {
    /// `nil`: the value itself is compared.
    public var quantifier: RecordPredicate.Quantifier? { nil }

    /// Compares with any of the tree's comparators.
    public func compare(
        _ comparator: RecordPredicate.Comparator, _ other: some PredicateOperand,
        _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        PredicateCondition(
            .comparison(
                RecordPredicate.Comparison(
                    predicateExpression, comparator, other.predicateExpression,
                    options: options, quantifier: quantifier)))
    }

    /// Tests whether the two sides are equal.
    public static func == (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.equal, right)
    }

    /// Tests whether the two sides differ.
    public static func != (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.notEqual, right)
    }

    /// Tests whether the left side has no value.
    public static func == (left: Self, right: NilLiteral) -> PredicateCondition {
        left.compare(.equal, FieldValue.null)
    }

    /// Tests whether the left side has a value.
    public static func != (left: Self, right: NilLiteral) -> PredicateCondition {
        left.compare(.notEqual, FieldValue.null)
    }

    /// Tests whether the left side is less than the right side.
    public static func < (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.less, right)
    }

    /// Tests whether the left side is less than or equal to the right side.
    public static func <= (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.lessOrEqual, right)
    }

    /// Tests whether the left side is greater than the right side.
    public static func > (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.greater, right)
    }

    /// Tests whether the left side is greater than or equal to the right side.
    public static func >= (left: Self, right: some PredicateOperand) -> PredicateCondition {
        left.compare(.greaterOrEqual, right)
    }

    /// Tests for equality under text options: `$0.name.isEqual(to: "alice", [.ignoringCase])`.
    public func isEqual(
        to other: some PredicateOperand, _ options: RecordPredicate.TextOptions
    ) -> PredicateCondition {
        compare(.equal, other, options)
    }

    /// Tests whether the left side is one of the elements, or a part of the text.
    public func isIn(
        _ list: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.in, list, options)
    }

    /// Tests whether the left side is one of the elements.
    ///
    /// Elements of different kinds are written as `FieldValue`.
    public func isIn(
        _ list: FieldValue..., options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.in, FieldValue.list(list), options)
    }

    /// Tests whether the left side lies between two bounds, both included.
    public func isBetween(
        _ lower: some PredicateOperand, _ upper: some PredicateOperand
    ) -> PredicateCondition {
        compare(
            .between, PredicateValue(.list([lower.predicateExpression, upper.predicateExpression])))
    }

    /// Tests whether the left side contains the element, or the text.
    public func contains(
        _ other: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.contains, other, options)
    }

    /// Tests whether the left side begins with the text.
    public func beginsWith(
        _ other: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.beginsWith, other, options)
    }

    /// Tests whether the left side ends with the text.
    public func endsWith(
        _ other: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.endsWith, other, options)
    }

    /// Tests whether the pattern, with `*` and `?`, matches the whole left side.
    public func isLike(
        _ pattern: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.like, pattern, options)
    }

    /// Tests whether the regular expression matches the whole left side.
    public func matches(
        _ expression: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.matches, expression, options)
    }
}

/// A left side of a comparison that can also be an operand of arithmetic.
public protocol ArithmeticPredicateOperand: PredicateSubject, PredicateOperand {}

extension RecordFieldReference: ArithmeticPredicateOperand {}
extension PredicateValue: ArithmeticPredicateOperand {}

extension ArithmeticPredicateOperand {
    private func apply(
        _ symbol: RecordPredicate.ArithmeticOperator, _ other: some PredicateOperand
    ) -> PredicateValue {
        PredicateValue(
            .arithmetic(symbol, predicateExpression, other.predicateExpression))
    }

    /// Returns the sum.
    public static func + (left: Self, right: some PredicateOperand) -> PredicateValue {
        left.apply(.add, right)
    }

    /// Returns the difference.
    public static func - (left: Self, right: some PredicateOperand) -> PredicateValue {
        left.apply(.subtract, right)
    }

    /// Returns the product.
    public static func * (left: Self, right: some PredicateOperand) -> PredicateValue {
        left.apply(.multiply, right)
    }

    /// Returns the quotient.
    ///
    /// The quotient of two integers is truncated.
    public static func / (left: Self, right: some PredicateOperand) -> PredicateValue {
        left.apply(.divide, right)
    }

    /// Returns the negated number.
    public static prefix func - (operand: Self) -> PredicateValue {
        PredicateValue(.negative(operand.predicateExpression))
    }
}

/// The literal `nil`, as in `$0.nick == nil`.
public struct NilLiteral: ExpressibleByNilLiteral, Sendable {
    /// Creates the literal.
    ///
    /// The compiler calls this for `nil`.
    public init(nilLiteral: ()) {}
}
