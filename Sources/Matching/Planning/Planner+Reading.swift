import PredicateLanguage
import RelayModel

// Translates the tree of a predicate into the flat form that is planned.
extension Planner {
    /// Reads a predicate into ``tree``.
    ///
    /// - Returns: `false` if the predicate binds variables, which tie its comparisons together.
    func read(
        _ node: Node, isNegated: Bool, isConjunct: Bool, _ catalog: inout Catalog
    ) -> Bool {
        switch node {
        case .comparison(let comparison):
            var item = PlanItem(.comparison, isNegated: isNegated)
            if readPlain(comparison, &item, &catalog) {
                tree.weight.addPlain(isSearch: item.test == .has || item.test == .begins)
            } else {
                tree.weight.add(comparison)
                noteSystemFields(of: node, &catalog)
                if comparison.left.bindsVariables || comparison.right.bindsVariables {
                    return false
                }
                readOther(comparison, node, &item, &catalog)
            }
            append(item, isConjunct: isConjunct)
            return true
        case .not(let inner):
            return read(inner, isNegated: !isNegated, isConjunct: isConjunct, &catalog)
        case .and(let nodes):
            return read(nodes, .all, isNegated, isConjunct: isConjunct, &catalog)
        case .or(let nodes):
            return read(nodes, .any, isNegated, isConjunct: isConjunct, &catalog)
        case .constant(let holds):
            var item = PlanItem(.constant, isNegated: isNegated)
            item.holds = holds
            item.source = tree.keep(node)
            append(item, isConjunct: isConjunct)
            return true
        }
    }

    /// Reads an AND or OR.
    ///
    /// A conjunction inside a conjunct is flattened into conjuncts.
    private func read(
        _ nodes: [Node], _ kind: PlanItem.Kind, _ isNegated: Bool, isConjunct: Bool,
        _ catalog: inout Catalog
    ) -> Bool {
        let group = PlanItem(kind, isNegated: isNegated)
        let isMerged = isConjunct && group.isConjunction
        let number = isMerged ? -1 : append(group, isConjunct: isConjunct)
        for inner in nodes {
            guard read(inner, isNegated: isNegated, isConjunct: isMerged, &catalog) else {
                return false
            }
        }
        if !isMerged { tree.close(number) }
        return true
    }

    @discardableResult
    private func append(_ item: PlanItem, isConjunct: Bool) -> Int {
        let number = tree.append(item)
        if isConjunct { tree.conjuncts.append(Int32(number)) }
        return number
    }

    // MARK: Comparisons

    /// Reads the most common comparison, of a field with a constant without options, and returns
    /// whether it is one.
    private func readPlain(
        _ comparison: Comparison, _ item: inout PlanItem, _ catalog: inout Catalog
    ) -> Bool {
        guard plan != 0, comparison.rules == .apple, comparison.quantifier == nil,
            comparison.rightQuantifier == nil, comparison.options.isEmpty,
            case .path(let path) = comparison.left,
            case .constant(let value) = comparison.right,
            readPlain(comparison.comparator, value, &item), let field = path.fieldName,
            let number = catalog.makePath(field, plan: plan)
        else { return false }
        item.path = Int32(number)
        return true
    }

    private func readPlain(
        _ comparator: RecordPredicate.Comparator, _ value: FieldValue, _ item: inout PlanItem
    ) -> Bool {
        switch comparator {
        case .equal: item.test = .equal
        case .notEqual: item.test = .notEqual
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            guard value.isRowOrdered else { return false }
            item.test = RowTest(ordering: comparator)
        case .beginsWith:
            guard value.isText else { return false }
            item.test = .begins
        case .contains:
            if value.isNull { return false }
            item.test = .has
        case .in:
            guard case .list(let values) = value else { return false }
            item.test = .member
            return readMembers(values, &item)
        default: return false
        }
        guard value.isRowScalar else { return false }
        item.constant = encoder.encode(value)
        return true
    }

    private func readMembers(_ values: [FieldValue], _ item: inout PlanItem) -> Bool {
        item.firstMember = Int32(tree.members.count)
        item.memberCount = Int32(values.count)
        for value in values {
            guard value.isRowScalar else { return false }
            let slot = encoder.encode(value)
            tree.members.append(slot)
        }
        return true
    }

    /// Reads any other comparison.
    private func readOther(
        _ comparison: Comparison, _ node: Node, _ item: inout PlanItem, _ catalog: inout Catalog
    ) {
        // Subscriptions to all record types have no numbered fields.
        guard plan != 0, let leaf = Leaf(comparison), let path = path(of: leaf, &catalog) else {
            if catalog.isCrowded(plan) { unplaced += 1 }
            item.kind = .opaque
            item.test = .reference
            item.source = tree.keep(node)
            return
        }
        item.path = Int32(path)
        item.test = leaf.test
        item.view = leaf.view
        if leaf.isTurned { item.isNegated.toggle() }
        if let clue = leaf.clue { item.clue = tree.keep(clue) }
        switch leaf.test {
        case .reference: item.source = tree.keep(node)
        case .member: readMembers(of: leaf, &item)
        case .like:
            if case .string(let text) = leaf.constant {
                let pattern = PatternText(text, escapesAnything: item.isLoose)
                item.constant = encoder.pattern(pattern.bytes)
            }
        default: item.constant = encode(leaf.constant, in: leaf.view)
        }
        if let upper = leaf.upper {
            item.upper = encoder.encode(upper)
            item.hasUpper = true
            item.rows = 2
        }
    }

    private func readMembers(of leaf: Leaf, _ item: inout PlanItem) {
        guard leaf.view != nil else {
            _ = readMembers(leaf.members, &item)
            return
        }
        item.firstMember = Int32(tree.members.count)
        item.memberCount = Int32(leaf.members.count)
        for value in leaf.members {
            let slot = encode(value, in: leaf.view)
            tree.members.append(slot)
        }
    }

    /// Encodes a constant in the same form as the values that it is compared with.
    func encode(_ value: FieldValue, in view: ValueView?) -> FieldSlot {
        guard let view else { return encoder.encode(value) }
        return encoder.constant(value, in: view)
    }

    /// Notes the system fields that the evaluator will read.
    ///
    /// A comparison with all texts of a record uses only the record's own fields.
    func noteSystemFields(of node: Node, _ catalog: inout Catalog) {
        var fields: Set<String> = []
        _ = node.collectFields(&fields)
        if fields.contains(where: { SystemField(named: $0) != nil }) {
            catalog.useSystemFields(plan: plan)
        }
    }

    /// Returns the number of a comparison's path; `nil` if the plan has too many paths.
    private func path(of leaf: Leaf, _ catalog: inout Catalog) -> Int? {
        if let view = leaf.view {
            if !leaf.steps.isEmpty { return catalog.makePath(leaf.steps, view: view, plan: plan) }
            return catalog.makePath(leaf.field, inner: leaf.inner, view: view, plan: plan)
        }
        return leaf.field.isEmpty && leaf.clue != nil
            ? catalog.makeRecordPath(plan: plan)
            : catalog.makePath(
                leaf.field, inner: leaf.inner, folding: leaf.folding, plan: plan)
    }
}
