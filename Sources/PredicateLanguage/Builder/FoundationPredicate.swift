import RelayModel

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension RecordPredicate {
    /// Translates a `#Predicate` of one input, whose properties are the fields of a record.
    ///
    /// What can be translated: comparisons, `&&`, `||`, `!`, arithmetic, `contains`,
    /// `starts(with:)`, ranges, `nil`, `??`, `!`, `contains(where:)`, `allSatisfy`, `filter` and
    /// `count`. The meaning is then NSPredicate's, which differs from Swift's in one point: an
    /// empty text is part of no text.
    ///
    /// - Parameters:
    ///   - predicate: the predicate.
    ///   - fieldName: the field that a property stands for; `nil` takes the property's own name,
    ///     which Swift keeps in the binary unless it is built without reflection metadata.
    /// - Throws: ``PredicateError`` of the stage `check` that names the first part which cannot be
    ///   translated.
    public init<Root>(
        translating predicate: Predicate<Root>,
        fieldName: @escaping (AnyKeyPath) -> String? = { _ in nil }
    ) throws(PredicateError) {
        let translation = FoundationTranslation(fieldName: fieldName)
        translation.names[predicate.variable.key] = .record
        self.init(try translation.node(predicate.expression))
    }
}

/// The state of one translation: what the variables of closures are called.
final class FoundationTranslation {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression

    let fieldName: (AnyKeyPath) -> String?
    var names: [PredicateExpressions.VariableID: Expression] = [:]

    init(fieldName: @escaping (AnyKeyPath) -> String?) {
        self.fieldName = fieldName
    }

    /// A condition; a field by itself is asked whether it is true.
    func node(_ part: Any) throws(PredicateError) -> Node {
        if let condition = part as? any FoundationCondition {
            return try condition.node(self)
        }
        return compare(try expression(part), .equal, .constant(.bool(true)))
    }

    /// A value; a condition becomes 1 or 0.
    func expression(_ part: Any) throws(PredicateError) -> Expression {
        if let operand = part as? any FoundationOperand {
            return try operand.expression(self)
        }
        if let condition = part as? any FoundationCondition {
            let node = try condition.node(self)
            return .conditional(node, .constant(.bool(true)), .constant(.bool(false)))
        }
        throw PredicateError(
            .check, "\(Self.name(of: part)) of #Predicate cannot be translated",
            found: Self.name(of: part),
            expected: "comparisons, membership, arithmetic, AND, OR and NOT")
    }

    func compare(
        _ left: Expression, _ comparator: RecordPredicate.Comparator, _ right: Expression,
        _ options: RecordPredicate.TextOptions = []
    ) -> Node {
        .comparison(RecordPredicate.Comparison(left, comparator, right, options: options))
    }

    /// The variable of a closure.
    func bind(_ key: PredicateExpressions.VariableID) -> String {
        let name = "x\(names.count)"
        names[key] = .variable(name)
        return name
    }

    /// `SUBQUERY(list, $x, condition)`, counted.
    func count(
        _ list: Any, _ key: PredicateExpressions.VariableID, _ test: Any, isNegated: Bool
    ) throws(PredicateError) -> Expression {
        let list = try expression(list)
        let variable = bind(key)
        let node = try node(test)
        let elements = Expression.subquery(
            list, variable: variable, isNegated ? .not(node) : node)
        return .member(of: elements, RecordPredicate.RecordPath([.collection(.count)]))
    }

    /// The expression one step further on.
    func member(
        _ component: RecordPredicate.RecordPath.Component, of base: Expression
    )
        -> Expression
    {
        switch base {
        case .path(let path):
            .path(RecordPredicate.RecordPath(path.components + [component]))
        case .member(let root, let path):
            .member(of: root, RecordPredicate.RecordPath(path.components + [component]))
        default: .member(of: base, RecordPredicate.RecordPath([component]))
        }
    }

    /// The property's name: the last part of the key path's description, `\Artwork.price`.
    func name(of keyPath: AnyKeyPath) throws(PredicateError) -> String {
        if let name = fieldName(keyPath) { return name }
        let description = String(reflecting: keyPath)
        guard let dot = description.lastIndex(of: "."), !description.hasSuffix(">") else {
            throw PredicateError(
                .check, "the name of the property \(description) is not in the binary",
                expected: "a field name", hint: "give its name with fieldName:")
        }
        return String(description[description.index(after: dot)...])
    }

    static func name(of part: Any) -> String {
        let name = String(describing: type(of: part))
        return String(name.prefix { $0 != "<" })
    }
}

/// A part of a `#Predicate` that is true or false.
protocol FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node
}

/// A part of a `#Predicate` that has a value.
protocol FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression
}
