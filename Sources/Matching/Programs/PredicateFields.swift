package import PredicateLanguage
package import RelayModel

extension RecordPredicate {
    /// Returns the predicate for an image that has only the `known` fields.
    ///
    /// It fires only if the predicate would fire for any values of the other fields: a comparison
    /// that reads another field fails, and so does its opposite under NOT.
    package func knowing(_ known: some Sequence<String>) -> RecordPredicate {
        let known = Set(known)
        return keeping { fields, isWhole in isWhole && fields.isSubset(of: known) }
    }

    /// Returns the predicate for an image in which everything is known except the fields in
    /// `unknown`.
    func lacking(_ unknown: Set<String>) -> RecordPredicate {
        keeping { fields, _ in fields.isDisjoint(with: unknown) }
    }

    private func keeping(_ isKnown: (Set<String>, Bool) -> Bool) -> RecordPredicate {
        if root.bindsVariables {
            var fields: Set<String> = []
            let isWhole = root.collectFields(&fields)
            return isKnown(fields, isWhole) ? self : .noRecord
        }
        return RecordPredicate(root.keeping(isKnown, isNegated: false))
    }
}

extension RecordPredicate {
    /// Returns the predicate and the fields by which a change is judged; the index must give the
    /// same outcome.
    ///
    /// Fields that a partial image lacks are unknown, and so are system fields whose value the
    /// relay does not know. If the change has no image, all of the record's own fields are unknown.
    /// `moment` is the time of the change.
    package func judged(
        _ change: RecordChange, at moment: Timestamp?
    ) -> (predicate: RecordPredicate, fields: RecordFields) {
        let image = change.judgedImage ?? RecordImage([:], completeness: .partial)
        var read: Set<String> = []
        _ = root.collectFields(&read)
        let system = read.filter { SystemField(named: $0) != nil }
        let fields =
            system.isEmpty ? image.fields : change.judgedFields(change.judgedSide, at: moment)
        if image.completeness == .partial { return (knowing(fields.keys), fields) }
        let unknown = system.filter { fields[$0] == nil }
        return (unknown.isEmpty ? self : lacking(unknown), fields)
    }
}

extension RecordPredicate.Node {
    /// Returns the node with every comparison that cannot be judged replaced, so that both it and
    /// its opposite fail.
    ///
    /// `isKnown` decides from the fields that a comparison reads, and from whether these are all
    /// that it can read.
    func keeping(_ isKnown: (Set<String>, Bool) -> Bool, isNegated: Bool) -> Self {
        switch self {
        case .constant: return self
        case .comparison:
            var fields: Set<String> = []
            let isWhole = collectFields(&fields)
            return isKnown(fields, isWhole) ? self : .constant(isNegated)
        case .not(let inner): return .not(inner.keeping(isKnown, isNegated: !isNegated))
        case .and(let nodes):
            return .and(nodes.map { $0.keeping(isKnown, isNegated: isNegated) })
        case .or(let nodes):
            return .or(nodes.map { $0.keeping(isKnown, isNegated: isNegated) })
        }
    }
}

extension RecordPredicate {
    /// Whether variables tie the comparisons together, so that none can be judged on its own.
    package var bindsVariables: Bool { root.bindsVariables }
}

extension RecordPredicate.Node {
    /// Whether some expression binds a variable for later comparisons, which ties them together.
    var bindsVariables: Bool {
        switch self {
        case .constant: false
        case .comparison(let comparison):
            comparison.left.bindsVariables || comparison.right.bindsVariables
        case .and(let nodes), .or(let nodes): nodes.contains { $0.bindsVariables }
        case .not(let node): node.bindsVariables
        }
    }
}

extension RecordPredicate.Expression {
    /// Whether it contains an assignment.
    var bindsVariables: Bool {
        switch self {
        case .assignment: true
        case .constant, .variable, .anyKey: false
        case .path(let path): path.expressions.contains { $0.bindsVariables }
        case .member(let base, let path):
            base.bindsVariables || path.expressions.contains { $0.bindsVariables }
        case .list(let elements), .call(_, let elements): elements.contains { $0.bindsVariables }
        case .arithmetic(_, let left, let right): left.bindsVariables || right.bindsVariables
        case .negative(let inner), .complement(let inner), .cast(let inner, _):
            inner.bindsVariables
        case .conditional(let node, let yes, let other):
            node.bindsVariables || yes.bindsVariables || other.bindsVariables
        case .subquery(let list, _, let node): list.bindsVariables || node.bindsVariables
        }
    }

    /// Adds the record's fields that the expression reads, and returns whether these are all that
    /// it can read.
    func collectFields(_ fields: inout Set<String>) -> Bool {
        switch self {
        case .constant, .variable: return true
        case .anyKey: return false
        case .path(let path):
            guard case .member(let name)? = path.components.first else { return false }
            fields.insert(name)
            return path.expressions.collectFields(&fields)
        case .member(let base, let path):
            let isWhole = base.collectFields(&fields)
            return path.expressions.collectFields(&fields) && isWhole
        case .list(let elements), .call(_, let elements):
            return elements.collectFields(&fields)
        case .arithmetic(_, let left, let right):
            return [left, right].collectFields(&fields)
        case .negative(let inner), .complement(let inner), .cast(let inner, _),
            .assignment(_, let inner):
            return inner.collectFields(&fields)
        case .conditional(let node, let yes, let other):
            let isWhole = node.collectFields(&fields)
            return [yes, other].collectFields(&fields) && isWhole
        case .subquery(let list, _, let node):
            let isWhole = list.collectFields(&fields)
            return node.collectFields(&fields) && isWhole
        }
    }
}

private extension [RecordPredicate.Expression] {
    /// Adds the fields that any of the expressions reads, and returns whether these are all that
    /// they can read.
    ///
    /// All expressions are visited, even after one whose fields cannot be told.
    func collectFields(_ fields: inout Set<String>) -> Bool {
        reduce(true) { $1.collectFields(&fields) && $0 }
    }
}

extension RecordPredicate.Node {
    /// Adds the record's fields that the node reads, and returns whether these are all that it can
    /// read.
    func collectFields(_ fields: inout Set<String>) -> Bool {
        switch self {
        case .constant: true
        case .comparison(let comparison):
            [comparison.left, comparison.right].collectFields(&fields)
        case .and(let nodes), .or(let nodes):
            // All nodes are visited, even after one whose fields cannot be told.
            nodes.reduce(true) { $1.collectFields(&fields) && $0 }
        case .not(let node): node.collectFields(&fields)
        }
    }
}

extension RecordPredicate.RecordPath {
    /// The expressions in index brackets.
    var expressions: [RecordPredicate.Expression] {
        components.compactMap { component in
            if case .element(let index) = component { index } else { nil }
        }
    }
}
