package import PredicateLanguage
package import RelayModel

extension RecordPredicate {
    /// The predicate as it is judged on an image that has only `known` fields, so that it fires
    /// only if it would whatever the others hold: a comparison that reads another field fails, and
    /// so does its contrary under NOT.
    package func knowing(_ known: some Sequence<String>) -> RecordPredicate {
        let known = Set(known)
        if root.bindsVariables {
            var fields: Set<String> = []
            let isKnown = root.collectFields(&fields) && fields.isSubset(of: known)
            return isKnown ? self : .noRecord
        }
        return RecordPredicate(root.knowing(known, isNegated: false))
    }
}

extension RecordPredicate {
    /// The predicate and the fields by which a change is judged: what the index is held to.
    ///
    /// Fields that a partial image lacks, and system fields that nobody knows, are unknown.
    /// `moment` is when the change happened. `nil` if the change shows no image to judge.
    package func judged(
        _ change: RecordChange, at moment: Timestamp?
    ) -> (predicate: RecordPredicate, fields: RecordFields)? {
        guard let image = change.judgedImage else { return nil }
        var read: Set<String> = []
        _ = root.collectFields(&read)
        let system = read.filter { SystemField(named: $0) != nil }
        let fields =
            system.isEmpty ? image.fields : change.judgedFields(change.judgedSide, at: moment)
        if image.completeness == .partial { return (knowing(fields.keys), fields) }
        let unknown = system.filter { fields[$0] == nil }
        return (unknown.isEmpty ? self : knowing(read.subtracting(unknown)), fields)
    }
}

extension RecordPredicate.Node {
    func knowing(_ known: Set<String>, isNegated: Bool) -> Self {
        switch self {
        case .constant: return self
        case .comparison:
            var fields: Set<String> = []
            let isKnown = collectFields(&fields) && fields.isSubset(of: known)
            return isKnown ? self : .constant(isNegated)
        case .not(let inner): return .not(inner.knowing(known, isNegated: !isNegated))
        case .and(let nodes):
            return .and(nodes.map { $0.knowing(known, isNegated: isNegated) })
        case .or(let nodes):
            return .or(nodes.map { $0.knowing(known, isNegated: isNegated) })
        }
    }
}

extension RecordPredicate {
    /// Whether its comparisons are tied together by variables, so that none can be judged alone.
    package var bindsVariables: Bool { root.bindsVariables }
}

extension RecordPredicate.Node {
    /// Whether some expression binds a variable for comparisons after it, which ties them together.
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

    /// Adds the fields of the record that it reads; says whether these are all that can be.
    func collectFields(_ fields: inout Set<String>) -> Bool {
        switch self {
        case .constant, .variable: return true
        case .anyKey: return false
        case .path(let path):
            guard case .member(let name)? = path.components.first else { return false }
            fields.insert(name)
            return path.expressions.allSatisfy { $0.collectFields(&fields) }
        case .member(let base, let path):
            return base.collectFields(&fields)
                && path.expressions.allSatisfy { $0.collectFields(&fields) }
        case .list(let elements), .call(_, let elements):
            return elements.allSatisfy { $0.collectFields(&fields) }
        case .arithmetic(_, let left, let right):
            return left.collectFields(&fields) && right.collectFields(&fields)
        case .negative(let inner), .complement(let inner), .cast(let inner, _),
            .assignment(_, let inner):
            return inner.collectFields(&fields)
        case .conditional(let node, let yes, let other):
            return node.collectFields(&fields) && yes.collectFields(&fields)
                && other.collectFields(&fields)
        case .subquery(let list, _, let node):
            return list.collectFields(&fields) && node.collectFields(&fields)
        }
    }
}

extension RecordPredicate.Node {
    /// Adds the fields of the record that it reads; says whether these are all that can be.
    func collectFields(_ fields: inout Set<String>) -> Bool {
        switch self {
        case .constant: true
        case .comparison(let comparison):
            comparison.left.collectFields(&fields) && comparison.right.collectFields(&fields)
        case .and(let nodes), .or(let nodes): nodes.allSatisfy { $0.collectFields(&fields) }
        case .not(let node): node.collectFields(&fields)
        }
    }
}

extension RecordPredicate.RecordPath {
    /// The expressions inside index brackets.
    var expressions: [RecordPredicate.Expression] {
        components.compactMap { component in
            if case .element(let index) = component { index } else { nil }
        }
    }
}
