public import RelayModel

extension RecordPredicate.Node {
    /// Returns the normal form (see ``RecordPredicate/init(_:)``).
    func normalized() -> Self {
        switch self {
        case .constant: self
        case .comparison(let comparison): .comparison(comparison.normalized())
        case .not(let node): .not(node.normalized())
        case .and(let nodes):
            switch nodes.count {
            case 0: .constant(true)
            case 1: nodes[0].normalized()
            default: .and(nodes.map { $0.normalized() })
            }
        case .or(let nodes):
            switch nodes.count {
            case 0: .constant(false)
            case 1: nodes[0].normalized()
            default: .or(nodes.map { $0.normalized() })
            }
        }
    }
}

extension RecordPredicate.Comparison {
    func normalized() -> Self {
        var copy = self
        copy.left = left.normalized(rules)
        copy.right = right.normalized(rules)
        return copy
    }
}

extension RecordPredicate.Expression {
    func normalized(_ rules: RecordPredicate.RuleSet) -> Self {
        switch self {
        case .constant(let value):
            return rules == .apple ? .constant(value.withBooleansAsIntegers) : self
        case .variable, .anyKey: return self
        case .path(let path): return .path(path.normalized(rules))
        case .member(let base, let path):
            if case .path(let start) = base {
                let whole = RecordPredicate.RecordPath(
                    start.components + path.components, span: start.span)
                return .path(whole.normalized(rules))
            }
            return .member(of: base.normalized(rules), path.normalized(rules))
        case .list(let elements):
            let elements = elements.map { $0.normalized(rules) }
            let values = elements.compactMap(\.literal)
            return values.count == elements.count ? .constant(.list(values)) : .list(elements)
        case .arithmetic(let symbol, let left, let right):
            return .arithmetic(symbol, left.normalized(rules), right.normalized(rules))
        case .negative(let inner):
            let inner = inner.normalized(rules)
            return inner.literal?.negated.map(Self.constant) ?? .negative(inner)
        case .complement(let inner): return .complement(inner.normalized(rules))
        case .call(let function, let arguments):
            return .call(function, arguments.map { $0.normalized(rules) })
        case .cast(let inner, let type): return .cast(inner.normalized(rules), type)
        case .conditional(let node, let yes, let other):
            return .conditional(
                node.normalized(), yes.normalized(rules), other.normalized(rules))
        case .subquery(let list, let variable, let node):
            return .subquery(list.normalized(rules), variable: variable, node.normalized())
        case .assignment(let name, let inner): return .assignment(name, inner.normalized(rules))
        }
    }

    /// The value, if the expression is a constant.
    public var literal: FieldValue? {
        if case .constant(let value) = self { value } else { nil }
    }
}

extension RecordPredicate.RecordPath {
    func normalized(_ rules: RecordPredicate.RuleSet) -> Self {
        var copy = self
        copy.components = components.map { component in
            guard case .element(let index) = component else { return component }
            return .element(index.normalized(rules))
        }
        return copy
    }
}

extension FieldValue {
    /// The value with 1 for true and 0 for false.
    var withBooleansAsIntegers: FieldValue {
        switch self {
        case .bool(let flag): .integer(flag ? 1 : 0)
        case .list(let values): .list(values.map(\.withBooleansAsIntegers))
        case .set(let values): .set(Set(values.map(\.withBooleansAsIntegers)))
        case .map(let members): .map(members.mapValues(\.withBooleansAsIntegers))
        default: self
        }
    }

    /// The number with the opposite sign, or `nil` if the value is not a number or the result does
    /// not fit.
    var negated: FieldValue? {
        switch self {
        case .integer(let number) where number != .min: .integer(-number)
        case .double(let number): .double(-number)
        default: nil
        }
    }
}
