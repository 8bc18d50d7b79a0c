import PredicateLanguage
import RelayModel

/// Lays trees flat: AND, OR and NOT become the places to which rows lead.
struct ProgramCompiler {
    let shelf: Int

    /// The number of rows that a tree becomes.
    func rows(_ node: Node) -> Int {
        switch node {
        case .constant: 1
        case .comparison(let comparison): Leaf(comparison)?.upper == nil ? 1 : 2
        case .not(let inner): rows(inner)
        case .and(let nodes), .or(let nodes): nodes.reduce(0) { $0 + rows($1) }
        }
    }

    func rows(_ member: Planner.Member) -> Int {
        if let leaf = member.leaf { return leaf.upper == nil ? 1 : 2 }
        return rows(member.node)
    }

    /// Writes the conjunction of `members` into the planner's draft.
    func compile(
        _ members: [Planner.Member], into planner: Planner, _ catalog: inout Catalog
    ) {
        for (index, member) in members.enumerated() {
            let next = planner.draft.rowCount + rows(member)
            let isLast = index == members.count - 1
            let onward = isLast ? ProgramRow.accept : UInt16(next)
            let onTrue = member.isNegated ? ProgramRow.reject : onward
            let onFalse = member.isNegated ? onward : ProgramRow.reject
            if let leaf = member.leaf, leaf.test != .reference {
                compile(
                    leaf, isNegated: member.isNegated, onTrue: onTrue, onFalse: onFalse,
                    into: planner)
            } else {
                compile(
                    member.node, isNegated: member.isNegated, onTrue: onTrue, onFalse: onFalse,
                    into: planner, &catalog)
            }
        }
    }

    private func compile(
        _ node: Node, isNegated: Bool, onTrue: UInt16, onFalse: UInt16, into planner: Planner,
        _ catalog: inout Catalog
    ) {
        switch node {
        case .not(let inner):
            compile(
                inner, isNegated: !isNegated, onTrue: onFalse, onFalse: onTrue, into: planner,
                &catalog)
        case .and(let nodes), .or(let nodes):
            let isAnd = if case .and = node { true } else { false }
            for (index, inner) in nodes.enumerated() {
                let next = UInt16(planner.draft.rowCount + rows(inner))
                let isLast = index == nodes.count - 1
                compile(
                    inner, isNegated: isNegated, onTrue: isAnd && !isLast ? next : onTrue,
                    onFalse: !isAnd && !isLast ? next : onFalse, into: planner, &catalog)
            }
        case .comparison(let comparison):
            guard let leaf = planner.leaf(comparison, &catalog), leaf.test != .reference else {
                // A second row, which nothing leads to, where ``rows(_:)`` counted on two bounds.
                for _ in 0..<rows(node) {
                    planner.appendReference(
                        node, isNegated: isNegated, onTrue: onTrue, onFalse: onFalse)
                }
                return
            }
            compile(
                leaf, isNegated: isNegated, onTrue: onTrue, onFalse: onFalse, into: planner)
        case .constant:
            planner.appendReference(node, isNegated: isNegated, onTrue: onTrue, onFalse: onFalse)
        }
    }

    private func compile(
        _ leaf: Leaf, isNegated: Bool, onTrue: UInt16, onFalse: UInt16, into planner: Planner
    ) {
        let path = leaf.path
        let constant = constants(of: leaf, planner)
        guard let upper = leaf.upper else {
            planner.draft.append(
                ProgramRow(
                    leaf.test, isNegated: isNegated, path: path, constant: constant,
                    onTrue: onTrue, onFalse: onFalse))
            return
        }
        let next = UInt16(planner.draft.rowCount + 1)
        planner.draft.append(
            ProgramRow(
                .greaterOrEqual, isNegated: isNegated, path: path, constant: constant,
                onTrue: next, onFalse: onFalse))
        let slot = planner.encoder.encode(upper)
        let second = planner.draft.append(constant: slot, bytes: planner.encoder.bytes.base)
        planner.draft.append(
            ProgramRow(
                .lessOrEqual, isNegated: isNegated, path: path, constant: second,
                onTrue: onTrue, onFalse: onFalse))
    }

    private func constants(of leaf: Leaf, _ planner: Planner) -> UInt32 {
        if leaf.test == .like, case .string(let text) = leaf.constant {
            let slot = planner.encoder.pattern(PatternText(text).bytes)
            return planner.draft.append(constant: slot, bytes: planner.encoder.bytes.base)
        }
        guard leaf.test == .member else {
            let slot = planner.encoder.encode(leaf.constant)
            return planner.draft.append(constant: slot, bytes: planner.encoder.bytes.base)
        }
        let start = UInt32(planner.draft.constants.count)
        planner.draft.constants.append(UInt32(leaf.members.count))
        for constant in leaf.members {
            let slot = planner.encoder.encode(constant)
            _ = planner.draft.append(constant: slot, bytes: planner.encoder.bytes.base)
        }
        return start
    }
}
