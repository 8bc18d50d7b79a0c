import RelayModel

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension RecordPredicate {
    /// Translates a `#Predicate` with one input, whose properties are the fields of a record.
    ///
    /// The translation supports comparisons, `&&`, `||`, `!`, arithmetic, `contains`,
    /// `starts(with:)`, ranges, `nil`, `??`, forced unwrapping, `contains(where:)`, `allSatisfy`,
    /// `filter` and `count`. The translated condition follows NSPredicate's rules, which differ
    /// from Swift's in one point: no text contains the empty text.
    ///
    /// - Parameters:
    ///   - predicate: the predicate to translate.
    ///   - fieldName: returns the name of the field for a property. If it returns `nil`, the field
    ///     has the property's own name, which Swift keeps in the binary unless it is built without
    ///     reflection metadata.
    /// - Throws: ``PredicateError`` of the stage `check` that names the first part that cannot be
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

/// The state of one translation: the names of the variables of closures.
final class FoundationTranslation {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression

    let fieldName: (AnyKeyPath) -> String?
    var names: [PredicateExpressions.VariableID: Expression] = [:]

    init(fieldName: @escaping (AnyKeyPath) -> String?) {
        self.fieldName = fieldName
    }

    /// Translates a part to a condition.
    ///
    /// A plain value is compared with `true`.
    func node(_ part: Any) throws(PredicateError) -> Node {
        if let condition = part as? any FoundationCondition {
            return try condition.node(self)
        }
        return compare(try expression(part), .equal, .constant(.bool(true)))
    }

    /// Translates a part to a value.
    ///
    /// A condition becomes `true` or `false`.
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

    /// Binds the variable of a closure to a new name, and returns the name.
    func bind(_ key: PredicateExpressions.VariableID) -> String {
        let name = "x\(names.count)"
        names[key] = .variable(name)
        return name
    }

    /// Returns the number of elements in `SUBQUERY(list, $x, condition)`.
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

    /// Returns `base` with its path extended by `component`.
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

    /// Returns the name of a property: the last part of the key path's description, such as `price`
    /// in `\Artwork.price`.
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

/// A part of a `#Predicate` that translates to a condition.
protocol FoundationCondition {
    func node(_ translation: FoundationTranslation) throws(PredicateError) -> RecordPredicate.Node
}

/// A part of a `#Predicate` that translates to a value.
protocol FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression
}
