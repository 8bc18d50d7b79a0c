public import RelayModel

extension String: PredicateOperand {
    /// The text as a constant.
    public var predicateExpression: RecordPredicate.Expression { .constant(.string(self)) }
}

extension Int: PredicateOperand {
    /// The number as a constant.
    public var predicateExpression: RecordPredicate.Expression {
        .constant(.integer(Int64(self)))
    }
}

extension Int64: PredicateOperand {
    /// The number as a constant.
    public var predicateExpression: RecordPredicate.Expression { .constant(.integer(self)) }
}

extension Double: PredicateOperand {
    /// The number as a constant.
    public var predicateExpression: RecordPredicate.Expression { .constant(.double(self)) }
}

extension Bool: PredicateOperand {
    /// The boolean as a constant.
    public var predicateExpression: RecordPredicate.Expression { .constant(.bool(self)) }
}

extension Timestamp: PredicateOperand {
    /// The date as a constant.
    public var predicateExpression: RecordPredicate.Expression { .constant(.timestamp(self)) }
}

extension Location: PredicateOperand {
    /// The location as a constant.
    public var predicateExpression: RecordPredicate.Expression { .constant(.location(self)) }
}

extension RecordReference: PredicateOperand {
    /// The reference as a constant.
    public var predicateExpression: RecordPredicate.Expression { .constant(.reference(self)) }
}

extension UUIDBytes: PredicateOperand {
    /// The identifier as a constant.
    public var predicateExpression: RecordPredicate.Expression { .constant(.uuid(self)) }
}

extension FieldValue: PredicateOperand {
    /// The value as a constant.
    public var predicateExpression: RecordPredicate.Expression { .constant(self) }
}

extension Array: PredicateOperand where Element: PredicateOperand {
    /// The list of the elements' expressions.
    public var predicateExpression: RecordPredicate.Expression {
        .list(map(\.predicateExpression))
    }
}
