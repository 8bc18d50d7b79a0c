public import RelayModel

/// The left side of a comparison: a field, an arithmetic expression, or a field under a quantifier.
public protocol PredicateSubject {
    /// The expression in the tree.
    var predicateExpression: RecordPredicate.Expression { get }
    /// Which elements must satisfy the comparison; `nil` compares the value itself.
    var quantifier: RecordPredicate.Quantifier? { get }
}

extension PredicateSubject {
    /// Without a quantifier the value itself is compared.
    public var quantifier: RecordPredicate.Quantifier? { nil }

    /// A comparison by any of the tree's comparators.
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

    /// Equal under options: `$0.name.isEqual(to: "alice", [.ignoringCase])`.
    public func isEqual(
        to other: some PredicateOperand, _ options: RecordPredicate.TextOptions
    ) -> PredicateCondition {
        compare(.equal, other, options)
    }

    /// Is one of the elements, or a part of the text.
    public func isIn(
        _ list: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.in, list, options)
    }

    /// Is one of the elements; elements of different kinds are written as `FieldValue`.
    public func isIn(
        _ list: FieldValue..., options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.in, FieldValue.list(list), options)
    }

    /// Lies between two bounds, both included.
    public func isBetween(
        _ lower: some PredicateOperand, _ upper: some PredicateOperand
    ) -> PredicateCondition {
        compare(
            .between, PredicateValue(.list([lower.predicateExpression, upper.predicateExpression])))
    }

    /// Has the element, or the part.
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

    /// Ends with the text.
    public func endsWith(
        _ other: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.endsWith, other, options)
    }

    /// Is like the pattern of `*` and `?`, as a whole.
    public func isLike(
        _ pattern: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.like, pattern, options)
    }

    /// Is matched by the regular expression, as a whole.
    public func matches(
        _ expression: some PredicateOperand, _ options: RecordPredicate.TextOptions = []
    ) -> PredicateCondition {
        compare(.matches, expression, options)
    }
}

/// A left side of which one can also calculate.
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

    /// Sum.
    public static func + (left: Self, right: some PredicateOperand) -> PredicateValue {
        left.apply(.add, right)
    }

    /// Difference.
    public static func - (left: Self, right: some PredicateOperand) -> PredicateValue {
        left.apply(.subtract, right)
    }

    /// Product.
    public static func * (left: Self, right: some PredicateOperand) -> PredicateValue {
        left.apply(.multiply, right)
    }

    /// Quotient; of two integers it is truncated.
    public static func / (left: Self, right: some PredicateOperand) -> PredicateValue {
        left.apply(.divide, right)
    }

    /// The contrary number.
    public static prefix func - (operand: Self) -> PredicateValue {
        PredicateValue(.negative(operand.predicateExpression))
    }
}

/// The `nil` of `$0.nick == nil`.
public struct NilLiteral: ExpressibleByNilLiteral, Sendable {
    /// Called by the compiler for `nil`.
    public init(nilLiteral: ()) {}
}
