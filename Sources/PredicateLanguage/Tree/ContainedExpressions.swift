extension RecordPredicate {
    /// Whether the outcome depends on the time of the evaluation, because the predicate uses
    /// `now()`.
    public var readsClock: Bool {
        root.contains { expression in
            if case .call(.now, _) = expression { true } else { false }
        }
    }
}

extension RecordPredicate.Node {
    /// Whether the node contains an assignment `$x := …`.
    var assigns: Bool {
        contains { expression in
            if case .assignment = expression { true } else { false }
        }
    }

    /// Returns whether `fits` holds for any expression in this node.
    func contains(_ fits: (RecordPredicate.Expression) -> Bool) -> Bool {
        switch self {
        case .constant: false
        case .comparison(let comparison):
            comparison.left.contains(fits) || comparison.right.contains(fits)
        case .and(let nodes), .or(let nodes): nodes.contains { $0.contains(fits) }
        case .not(let inner): inner.contains(fits)
        }
    }
}

extension RecordPredicate.Expression {
    /// Returns whether `fits` holds for this expression, or for any expression inside it.
    func contains(_ fits: (Self) -> Bool) -> Bool {
        if fits(self) { return true }
        switch self {
        case .constant, .variable, .anyKey: return false
        case .assignment(_, let value): return value.contains(fits)
        case .path(let path): return path.contains(fits)
        case .member(let base, let path): return base.contains(fits) || path.contains(fits)
        case .list(let elements), .call(_, let elements):
            return elements.contains { $0.contains(fits) }
        case .arithmetic(_, let left, let right): return left.contains(fits) || right.contains(fits)
        case .negative(let inner), .complement(let inner), .cast(let inner, _):
            return inner.contains(fits)
        case .conditional(let test, let first, let second):
            return test.contains(fits) || first.contains(fits) || second.contains(fits)
        case .subquery(let list, _, let condition):
            return list.contains(fits) || condition.contains(fits)
        }
    }
}

extension RecordPredicate.RecordPath {
    /// Returns whether `fits` holds for an expression in one of the path's indexes.
    func contains(_ fits: (RecordPredicate.Expression) -> Bool) -> Bool {
        components.contains { component in
            if case .element(let index) = component { index.contains(fits) } else { false }
        }
    }
}
