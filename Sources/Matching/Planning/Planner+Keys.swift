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
    ///
    /// Where it would be more than a subscription may have there are none.
    func hasKeys(isNegated: Bool) -> Bool {
        switch test {
        case .equal, .begins, .ends, .has, .anyEqual: !isNegated
        case .member: !isNegated && members.count <= Planner.mostKeys
        case .notEqual: isNegated
        case .like, .reference: !isNegated && (1...Planner.mostKeys).contains(clue?.keys ?? 0)
        default: false
        }
    }
}

// Writing the keys of what was chosen.
extension Planner {
    /// What the keys of a part of the predicate prove.
    struct Proof {
        /// Whether every key proves the part.
        var isExact: Bool
        /// Whether the part never has an evaluation error.
        var isSafe: Bool
    }

    /// Adds the keys of a part of the predicate.
    ///
    /// - Returns: what they prove; `nil` if there are none (some may have been added).
    @discardableResult
    func emit(_ node: Node, isNegated: Bool, _ catalog: inout Catalog) -> Proof? {
        switch node {
        case .constant(let holds):
            return holds == isNegated ? Proof(isExact: true, isSafe: true) : nil
        case .comparison(let comparison):
            return leaf(comparison, &catalog).flatMap {
                emitLeaf($0, isNegated: isNegated, &catalog)
            }
        case .not(let inner): return emit(inner, isNegated: !isNegated, &catalog)
        case .and(let nodes):
            return isNegated
                ? emitAny(nodes, isNegated: true, &catalog)
                : emitBest(nodes, isNegated: false, &catalog)
        case .or(let nodes):
            return isNegated
                ? emitBest(nodes, isNegated: true, &catalog)
                : emitAny(nodes, isNegated: false, &catalog)
        }
    }

    /// Adds the keys of one comparison, be it by value or by interval.
    func emitLeaf(_ leaf: Leaf, isNegated: Bool, _ catalog: inout Catalog) -> Proof? {
        let mark = keys.count
        if let interval = interval(of: leaf, isNegated: isNegated) {
            emit(interval, &catalog)
            for index in mark..<keys.count { keys[index].isExact = false }
            return Proof(isExact: false, isSafe: false)
        }
        guard leaf.hasKeys(isNegated: isNegated) else { return nil }
        emit(leaf, isNegated: isNegated, &catalog)
        var isExact = true
        for index in mark..<keys.count { isExact = isExact && keys[index].isExact }
        return Proof(isExact: isExact, isSafe: leaf.isSafe)
    }

    private func emitAny(
        _ nodes: [Node], isNegated: Bool, _ catalog: inout Catalog
    ) -> Proof? {
        let mark = keys.count
        // A member that can have an evaluation error could spoil the others' answer: then every key
        // needs the whole verified.
        var isExact = true
        for node in nodes {
            guard keys.count <= Self.mostKeys,
                let proof = emit(node, isNegated: isNegated, &catalog)
            else { return nil }
            isExact = isExact && proof.isExact && proof.isSafe
        }
        if !isExact {
            for index in mark..<keys.count { keys[index].isExact = false }
        }
        return Proof(isExact: isExact, isSafe: isExact)
    }

    private func emitBest(
        _ nodes: [Node], isNegated: Bool, _ catalog: inout Catalog
    ) -> Proof? {
        var best: Node?
        var least = Double.infinity
        for node in nodes {
            guard let access = estimate(node, isNegated: isNegated, &catalog),
                access.expected < least
            else { continue }
            least = access.expected
            best = node
        }
        guard let best else { return nil }
        let mark = keys.count
        guard emit(best, isNegated: isNegated, &catalog) != nil else { return nil }
        for index in mark..<keys.count { keys[index].isExact = false }
        return Proof(isExact: false, isSafe: false)
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
            let slot = encoder.encode(leaf.constant)
            addValue(.element, path, slot, &catalog)
            if slot.kind == .string { addPart(path, slot, &catalog) }
        case .begins: addPrefix(path, encoder.encode(leaf.constant), &catalog)
        case .ends: addPart(path, encoder.encode(leaf.constant), &catalog)
        case .like, .reference: leaf.clue.map { emit($0, path, &catalog) }
        default: return
        }
    }

    private func emit(_ clue: KeyClue, _ path: Int, _ catalog: inout Catalog) {
        let mark = keys.count
        switch clue {
        case .prefix(let text): addPrefix(path, encoder.string(text), &catalog)
        case .part(let text): addPart(path, encoder.string(text), &catalog)
        case .words(let words):
            for word in words { addWord(path, word, &catalog) }
            return
        case .elements(let values):
            for value in values { addValue(.element, path, encoder.encode(value), &catalog) }
        case .near(let place, let metres): addPlaces(path, place, metres, &catalog)
        }
        for index in mark..<keys.count { keys[index].isExact = false }
    }

    func addValue(
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
        let dimension = dimension(.prefix, path, .string)
        let wanted = min(Int(slot.length), KeyBytes.longestPrefix)
        _ = catalog.makeDimension(dimension)
        guard let length = catalog.prefixLength(for: wanted, dimension) else {
            addKey(self.dimension(.text, path, .string), begin(), isExact: false, &catalog)
            return
        }
        var part = slot
        part.length = UInt32(length)
        let start = begin()
        KeyBytes.append(part, from: encoder.bytes.base, to: &encoder.bytes)
        addKey(dimension, start, isExact: part.length == slot.length, &catalog)
        if !isEstimating { catalog.usePrefix(length: length, dimension) }
    }

    /// Adds the key of an interval: the cell in which it begins, or the list of those too wide for
    /// cells.
    ///
    /// - Returns: the size of the cells.
    @discardableResult
    func emit(_ interval: Interval, _ catalog: inout Catalog) -> CellLevel? {
        if interval.isEmpty { return nil }
        let dimension = dimension(.cell, interval.path, interval.valueClass)
        if interval.isBoundedBelow, interval.isBoundedAbove {
            _ = catalog.makeDimension(dimension)
        }
        guard interval.isBoundedBelow, interval.isBoundedAbove,
            let cells = catalog.chooseCells(interval, dimension),
            let place = cells.line.place(interval.low)
        else {
            let open = self.dimension(.open, interval.path, interval.valueClass)
            addKey(open, begin(), isExact: true, &catalog)
            return nil
        }
        let start = begin()
        encoder.append(UInt64(bitPattern: place >> Int64(cells.level)))
        encoder.bytes.append(cells.code)
        addKey(dimension, start, isExact: true, &catalog)
        if !isEstimating { catalog.useCell(cells, dimension) }
        return cells
    }

    func dimension(_ kind: KeyKind, _ path: Int, _ valueClass: ValueClass) -> KeyDimension {
        KeyDimension(
            shelf: UInt32(shelf), kind: kind, path: UInt16(path), valueClass: valueClass,
            isCompartmented: compartment != 0)
    }
}
