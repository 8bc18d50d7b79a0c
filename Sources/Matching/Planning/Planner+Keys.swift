import PredicateLanguage
import RelayModel

extension RowTest {
    /// Whether it compares by order, so that it bounds an interval.
    var isOrdering: Bool {
        switch self {
        case .less, .lessOrEqual, .greater, .greaterOrEqual: true
        default: false
        }
    }
}

extension Leaf {
    /// Whether there are keys of which one is hit whenever the comparison (or its contrary) holds.
    func hasKeys(isNegated: Bool) -> Bool {
        switch test {
        case .equal, .member, .begins, .has, .anyEqual: !isNegated
        case .notEqual: isNegated
        default: false
        }
    }
}

// Writing the keys of what was chosen.
extension Planner {
    /// Adds the keys of a part of the predicate that ``estimate(_:isNegated:_:)`` found to have some.
    func emit(_ node: Node, isNegated: Bool, _ catalog: inout Catalog) {
        let mark = keys.count
        switch node {
        case .constant: return
        case .comparison(let comparison):
            guard let leaf = leaf(comparison, &catalog) else { return }
            if let interval = interval(of: leaf, isNegated: isNegated) {
                emit(interval, &catalog)
                for index in mark..<keys.count { keys[index].isExact = false }
            } else {
                emit(leaf, isNegated: isNegated, &catalog)
            }
        case .not(let inner): emit(inner, isNegated: !isNegated, &catalog)
        case .and(let nodes):
            if isNegated {
                emitAny(nodes, isNegated: true, &catalog)
            } else {
                emitBest(nodes, isNegated: false, &catalog)
            }
        case .or(let nodes):
            if isNegated {
                emitBest(nodes, isNegated: true, &catalog)
            } else {
                emitAny(nodes, isNegated: false, &catalog)
            }
        }
    }

    private func emitAny(_ nodes: [Node], isNegated: Bool, _ catalog: inout Catalog) {
        let mark = keys.count
        // A member that can have an evaluation error could spoil the others' answer: then every key
        // needs the whole verified.
        var isExact = true
        for node in nodes {
            let access = estimate(node, isNegated: isNegated, &catalog)
            isExact = isExact && access?.isExact == true && access?.isSafe == true
            emit(node, isNegated: isNegated, &catalog)
        }
        if !isExact {
            for index in mark..<keys.count { keys[index].isExact = false }
        }
    }

    private func emitBest(_ nodes: [Node], isNegated: Bool, _ catalog: inout Catalog) {
        var best: Node?
        var least = Double.infinity
        for node in nodes {
            guard let access = estimate(node, isNegated: isNegated, &catalog),
                access.expected < least
            else { continue }
            least = access.expected
            best = node
        }
        let mark = keys.count
        if let best { emit(best, isNegated: isNegated, &catalog) }
        for index in mark..<keys.count { keys[index].isExact = false }
    }

    /// Adds the keys of one comparison.
    func emit(_ leaf: Leaf, isNegated: Bool, _ catalog: inout Catalog) {
        let path = leaf.path
        switch leaf.test {
        case .equal, .notEqual: addValue(.equal, path, encoder.encode(leaf.constant), &catalog)
        case .member:
            for constant in leaf.members {
                addValue(.equal, path, encoder.encode(constant), &catalog)
            }
        case .anyEqual: addValue(.element, path, encoder.encode(leaf.constant), &catalog)
        case .has:
            addValue(.element, path, encoder.encode(leaf.constant), &catalog)
            addKey(dimension(.text, path, .string), begin(), isExact: false, &catalog)
        case .begins: addPrefix(path, encoder.encode(leaf.constant), &catalog)
        default: return
        }
    }

    private func addValue(
        _ kind: KeyKind, _ path: Int, _ slot: FieldSlot, _ catalog: inout Catalog
    ) {
        var start = Int(slot.offset)
        if compartment != 0 || slot.length > KeyBytes.longest || slot.kind == .null {
            start = begin()
            KeyBytes.append(slot, from: encoder.bytes.base, to: &encoder.bytes)
        }
        addKey(
            dimension(kind, path, slot.kind), start, isExact: slot.length <= KeyBytes.longest,
            &catalog)
    }

    private func addPrefix(_ path: Int, _ slot: FieldSlot, _ catalog: inout Catalog) {
        // Nothing begins with the empty text.
        if slot.length == 0 { return }
        var part = slot
        part.length = min(slot.length, UInt32(KeyBytes.longestPrefix))
        let start = begin()
        KeyBytes.append(part, from: encoder.bytes.base, to: &encoder.bytes)
        let dimension = dimension(.prefix, path, .string)
        addKey(dimension, start, isExact: part.length == slot.length, &catalog)
        catalog.usePrefix(length: Int(part.length), dimension)
    }

    /// Adds the keys of an interval: one or two cells, or the list of those too wide for cells.
    func emit(_ interval: Interval, _ catalog: inout Catalog) {
        if interval.isEmpty { return }
        guard let cells = interval.cells else {
            let open = dimension(.open, interval.path, interval.valueClass)
            addKey(open, begin(), isExact: true, &catalog)
            return
        }
        let dimension = dimension(.cell, interval.path, interval.valueClass)
        for cell in cells.first...cells.last {
            let start = begin()
            encoder.append(UInt64(bitPattern: cell))
            encoder.bytes.append(UInt8(cells.level))
            addKey(dimension, start, isExact: true, &catalog)
        }
        catalog.useCell(level: cells.level, dimension)
    }

    private func dimension(_ kind: KeyKind, _ path: Int, _ valueClass: ValueClass) -> KeyDimension {
        KeyDimension(
            shelf: UInt32(shelf), kind: kind, path: UInt16(path), valueClass: valueClass,
            isCompartmented: compartment != 0)
    }
}
