public import RelayModel

extension RecordPredicate {
    /// Builds a predicate in Swift: `RecordPredicate.where { $0.artist == "a" && $0.price < 100 }`.
    ///
    /// The tree is the same as that of the equivalent NSPredicate text.
    public static func `where`(
        _ condition: (RecordFieldReference) -> PredicateCondition
    ) -> RecordPredicate {
        RecordPredicate(condition(.record).node)
    }
}

/// A condition, or a part of one, that is built in Swift.
///
/// ```swift
/// let condition = RecordPredicate.where { $0.artist == "a-1" && $0.price < 100 }
/// let written = try RecordPredicate(format: #"artist == "a-1" AND price < 100"#)
/// #expect(condition == written)
/// ```
public struct PredicateCondition: Sendable, Hashable {
    /// The part of the tree that this condition builds.
    public let node: RecordPredicate.Node

    /// Creates a condition from a part of a tree.
    public init(_ node: RecordPredicate.Node) {
        self.node = node
    }

    /// Requires both conditions.
    ///
    /// A chain of conditions extends one AND, as in text.
    public static func && (left: Self, right: Self) -> Self {
        if case .and(let nodes) = left.node { return Self(.and(nodes + [right.node])) }
        return Self(.and([left.node, right.node]))
    }

    /// Requires either condition.
    ///
    /// A chain of conditions extends one OR, as in text.
    public static func || (left: Self, right: Self) -> Self {
        if case .or(let nodes) = left.node { return Self(.or(nodes + [right.node])) }
        return Self(.or([left.node, right.node]))
    }

    /// Negates the condition.
    public static prefix func ! (condition: Self) -> Self {
        Self(.not(condition.node))
    }

    /// A condition that holds for every record.
    public static let always = Self(.constant(true))
    /// A condition that holds for no record.
    public static let never = Self(.constant(false))
}

/// A value in a predicate that is built in Swift.
public protocol PredicateOperand {
    /// The expression in the tree.
    var predicateExpression: RecordPredicate.Expression { get }
}

/// A field, or a path into one: `$0.address.city`, `$0["first name"]`.
@dynamicMemberLookup
public struct RecordFieldReference: Sendable, Hashable, PredicateOperand {
    let components: [RecordPredicate.RecordPath.Component]

    init(_ components: [RecordPredicate.RecordPath.Component]) {
        self.components = components
    }

    /// The record itself.
    public static let record = RecordFieldReference([])

    /// The member with the given name.
    public subscript(dynamicMember name: String) -> RecordFieldReference {
        self[name]
    }

    /// The member with the given name, which need not be a Swift identifier.
    public subscript(name: String) -> RecordFieldReference {
        RecordFieldReference(components + [.member(name)])
    }

    /// The element at the given index.
    public subscript(index: Int) -> RecordFieldReference {
        RecordFieldReference(components + [.element(.constant(.integer(Int64(index))))])
    }

    /// Appends a collection operator such as `@count`.
    ///
    /// The path can continue after it: `$0.kids.collection(.maximum).age`.
    public func collection(
        _ symbol: RecordPredicate.CollectionOperator
    ) -> RecordFieldReference {
        RecordFieldReference(components + [.collection(symbol)])
    }

    /// The path as an expression.
    public var predicateExpression: RecordPredicate.Expression {
        .path(RecordPredicate.RecordPath(components))
    }
}

/// An arithmetic expression, or a constant whose type the compiler cannot infer.
public struct PredicateValue: Sendable, Hashable, PredicateOperand {
    /// The expression in the tree.
    public let predicateExpression: RecordPredicate.Expression

    /// Creates an operand from an expression of the tree.
    public init(_ expression: RecordPredicate.Expression) {
        predicateExpression = expression
    }

    /// Creates an operand from a constant value.
    public init(_ value: FieldValue) {
        predicateExpression = .constant(value)
    }
}

/// A field under ANY, ALL or NONE.
public struct QuantifiedReference: Sendable, Hashable, PredicateSubject {
    /// The quantifier over the elements.
    public let quantifier: RecordPredicate.Quantifier?
    /// The path to the list.
    public let predicateExpression: RecordPredicate.Expression
}

/// Quantifies over any element of a list: `any($0.tags) == "red"`.
public func any(_ field: RecordFieldReference) -> QuantifiedReference {
    QuantifiedReference(
        quantifier: .any, predicateExpression: field.predicateExpression)
}

/// Quantifies over every element of a list.
public func all(_ field: RecordFieldReference) -> QuantifiedReference {
    QuantifiedReference(
        quantifier: .all, predicateExpression: field.predicateExpression)
}

/// Requires that no element of a list satisfies the comparison.
public func none(_ field: RecordFieldReference) -> QuantifiedReference {
    QuantifiedReference(
        quantifier: RecordPredicate.Quantifier.none, predicateExpression: field.predicateExpression)
}
