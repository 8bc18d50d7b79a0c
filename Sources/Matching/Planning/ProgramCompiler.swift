import PredicateLanguage
import RelayModel

// Compiles items into flat rows; AND, OR and NOT become the jump targets of rows.
extension Planner {
    /// Stores a program for the conjunction without the conjuncts that intervals verify
    /// (`verified`, as bits) and without the one that the key proves (`proven`, or -1).
    ///
    /// Returns 0 if nothing is left. A predicate that could take too many steps is evaluated and
    /// counted as a whole, in the order of the reference evaluation. Nothing is left out of it
    /// then.
    func compile(_ root: Node, without verified: UInt64, _ proven: Int) -> UInt32 {
        if tree.weight.isMetered { return reference(root) }
        let count = tree.conjuncts.count
        var left = count - verified.nonzeroBitCount - (proven < 0 ? 0 : 1)
        if left == 0 { return 0 }
        draft.removeAll()
        var total = 0
        for index in 0..<count where !isDone(index, verified, proven) {
            total += Int(tree.conjunct(index).rows)
        }
        if total > ProgramRow.most { return reference(root) }
        for index in 0..<count where !isDone(index, verified, proven) {
            left -= 1
            let item = tree.conjunct(index)
            let onward =
                left == 0 ? ProgramRow.accept : UInt16(draft.rowCount + Int(item.rows))
            compile(
                Int(tree.conjuncts[index]),
                onTrue: item.isNegated ? ProgramRow.reject : onward,
                onFalse: item.isNegated ? onward : ProgramRow.reject)
        }
        return programs.intern(draft)
    }

    @inline(__always)
    private func isDone(_ index: Int, _ verified: UInt64, _ proven: Int) -> Bool {
        index == proven || index < 64 && verified >> UInt64(index) & 1 == 1
    }

    /// Returns a program that passes the whole predicate to the reference evaluator.
    func reference(_ root: Node) -> UInt32 {
        draft.removeAll()
        appendReference(
            root, isNegated: false, onTrue: ProgramRow.accept, onFalse: ProgramRow.reject)
        return programs.intern(draft)
    }

    private func appendReference(
        _ node: Node, isNegated: Bool, onTrue: UInt16, onFalse: UInt16
    ) {
        let number = programs.reference(to: node)
        draft.append(
            ProgramRow(
                .reference, isNegated: isNegated, path: 0, constant: UInt32(number),
                onTrue: onTrue, onFalse: onFalse))
    }

    /// Writes the rows of an item; the targets are for the item without its NOTs.
    private func compile(_ number: Int, onTrue: UInt16, onFalse: UInt16) {
        let item = tree.items[number]
        switch item.kind {
        case .all, .any: compileGroup(number, onTrue: onTrue, onFalse: onFalse)
        case .comparison where item.test != .reference:
            compile(item, onTrue: onTrue, onFalse: onFalse)
        case .comparison, .opaque, .constant:
            appendReference(
                tree.sources[Int(item.source)], isNegated: item.isNegated, onTrue: onTrue,
                onFalse: onFalse)
        }
    }

    private func compileGroup(_ number: Int, onTrue: UInt16, onFalse: UInt16) {
        let group = tree.items[number]
        var member = number + 1
        while member < Int(group.end) {
            let item = tree.items[member]
            let next = UInt16(draft.rowCount + Int(item.rows))
            let isLast = item.end == group.end
            let yes = group.kind == .all && !isLast ? next : onTrue
            let other = group.kind == .any && !isLast ? next : onFalse
            // A NOT between the group and the item swaps the targets.
            let isTurned = item.isNegated != group.isNegated
            compile(member, onTrue: isTurned ? other : yes, onFalse: isTurned ? yes : other)
            member = Int(item.end)
        }
    }

    private func compile(_ item: PlanItem, onTrue: UInt16, onFalse: UInt16) {
        let constant = constants(of: item)
        guard item.hasUpper else {
            appendRow(item, item.test, constant, onTrue, onFalse)
            return
        }
        let next = UInt16(draft.rowCount + 1)
        appendRow(item, .greaterOrEqual, constant, next, onFalse)
        let upper = draft.append(constant: item.upper, bytes: encoder.bytes.base)
        appendRow(item, .lessOrEqual, upper, onTrue, onFalse)
    }

    private func appendRow(
        _ item: PlanItem, _ test: RowTest, _ constant: UInt32, _ onTrue: UInt16,
        _ onFalse: UInt16
    ) {
        draft.append(
            ProgramRow(
                test, isNegated: item.isNegated, isLoose: item.isLoose, path: Int(item.path),
                constant: constant, onTrue: onTrue, onFalse: onFalse))
    }

    private func constants(of item: PlanItem) -> UInt32 {
        guard item.test == .member else {
            return draft.append(constant: item.constant, bytes: encoder.bytes.base)
        }
        let start = draft.beginMembers(Int(item.memberCount))
        for index in Int(item.firstMember)..<Int(item.firstMember + item.memberCount) {
            _ = draft.append(constant: tree.members[index], bytes: encoder.bytes.base)
        }
        draft.endMembers(start)
        return UInt32(start)
    }
}
