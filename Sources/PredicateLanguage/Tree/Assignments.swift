extension RecordPredicate.Node {
    /// Whether an assignment `$x := …` stands somewhere in it.
    var assigns: Bool {
        switch self {
        case .constant: false
        case .comparison(let comparison): comparison.left.assigns || comparison.right.assigns
        case .and(let nodes), .or(let nodes): nodes.contains(where: \.assigns)
        case .not(let inner): inner.assigns
        }
    }
}

extension RecordPredicate.Expression {
    /// Whether an assignment stands somewhere in it.
    var assigns: Bool {
        switch self {
        case .constant, .variable, .anyKey: false
        case .assignment: true
        case .path(let path): path.assigns
        case .member(let base, let path): base.assigns || path.assigns
        case .list(let elements), .call(_, let elements): elements.contains(where: \.assigns)
        case .arithmetic(_, let left, let right): left.assigns || right.assigns
        case .negative(let inner), .complement(let inner), .cast(let inner, _): inner.assigns
        case .conditional(let test, let first, let second):
            test.assigns || first.assigns || second.assigns
        case .subquery(let list, _, let condition): list.assigns || condition.assigns
        }
    }
}

extension RecordPredicate.RecordPath {
    /// Whether an assignment stands in one of its indexes.
    var assigns: Bool {
        components.contains { component in
            if case .element(let index) = component { index.assigns } else { false }
        }
    }
}
