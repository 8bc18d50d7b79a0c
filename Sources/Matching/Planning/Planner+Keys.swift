import PredicateLanguage
import RelayModel

extension RowTest {
    /// Returns whether the test compares by order, so that it bounds an interval.
    var isOrdering: Bool {
        switch self {
        case .less, .lessOrEqual, .greater, .greaterOrEqual: true
        default: false
        }
    }
}

extension PlanItem {
    /// Returns whether the comparison never has an evaluation error.
    func isSafe(_ clues: [KeyClue]) -> Bool {
        // Under other dialects' rules, values of kinds that cannot be compared do not match, but
        // ANY needs a list.
        if isLoose { return test != .anyEqual && test != .reference }
        switch test {
        case .equal, .notEqual, .member: return true
        case .reference:
            if clue >= 0, case .words = clues[Int(clue)] { return true }
            return false
        default: return false
        }
    }

    /// Returns whether there are keys of which one is hit whenever the comparison (or, under NOT,
    /// its opposite) holds.
    ///
    /// Returns `false` also if there would be more keys than a subscription may have.
    func hasKeys(_ clues: [KeyClue]) -> Bool {
        switch test {
        case .equal, .begins, .ends, .has, .anyEqual: !isNegated
        case .member: !isNegated && memberCount <= Planner.mostKeys
        // In a view, an empty list satisfies the negation without any key.
        case .notEqual: isNegated && !isLoose
        case .like, .reference:
            !isNegated && clue >= 0 && (1...Planner.mostKeys).contains(clues[Int(clue)].keys)
        default: false
        }
    }
}

// Adds the keys of the chosen parts.
extension Planner {
    /// What the keys of a part of the predicate prove.
    struct Proof {
        /// Whether every key proves the part.
        var isExact: Bool
        /// Whether the part never has an evaluation error.
        var isSafe: Bool
    }

    /// Adds the keys of an item of ``tree``.
    ///
    /// - Returns: What they prove; `nil` if the item has no keys, although some may have been
    ///   added.
    @discardableResult
    func emit(_ number: Int, _ catalog: inout Catalog) -> Proof? {
        let item = tree.items[number]
        switch item.kind {
        case .constant:
            return item.holds == item.isNegated ? Proof(isExact: true, isSafe: true) : nil
        case .comparison: return emitComparison(item, &catalog)
        case .opaque: return nil
        case .all, .any:
            return item.isConjunction ? emitBest(number, &catalog) : emitAny(number, &catalog)
        }
    }

    /// Adds the keys of one comparison, by value or by interval.
    private func emitComparison(_ item: PlanItem, _ catalog: inout Catalog) -> Proof? {
        let mark = keys.count
        if let interval = interval(of: item) {
            emit(interval, &catalog)
            for index in mark..<keys.count { keys[index].isExact = false }
            return Proof(isExact: false, isSafe: false)
        }
        guard item.hasKeys(tree.clues) else { return nil }
        emit(item, &catalog)
        var isExact = true
        for index in mark..<keys.count { isExact = isExact && keys[index].isExact }
        return Proof(isExact: isExact, isSafe: item.isSafe(tree.clues))
    }

    private func emitAny(_ group: Int, _ catalog: inout Catalog) -> Proof? {
        let mark = keys.count
        // A member that can have an evaluation error may change the outcome of the whole, so every
        // key then requires that the whole is verified.
        var isExact = true
        let end = Int(tree.items[group].end)
        var member = group + 1
        while member < end {
            guard keys.count <= Self.mostKeys, let proof = emit(member, &catalog) else {
                return nil
            }
            isExact = isExact && proof.isExact && proof.isSafe
            member = Int(tree.items[member].end)
        }
        if !isExact {
            for index in mark..<keys.count { keys[index].isExact = false }
        }
        return Proof(isExact: isExact, isSafe: isExact)
    }

    private func emitBest(_ group: Int, _ catalog: inout Catalog) -> Proof? {
        var best = -1
        var least = Double.infinity
        let end = Int(tree.items[group].end)
        var member = group + 1
        while member < end {
            if let access = estimate(member, &catalog), access.expected < least {
                least = access.expected
                best = member
            }
            member = Int(tree.items[member].end)
        }
        if best < 0 { return nil }
        let mark = keys.count
        guard emit(best, &catalog) != nil else { return nil }
        for index in mark..<keys.count { keys[index].isExact = false }
        return Proof(isExact: false, isSafe: false)
    }

    /// Adds the keys of one comparison by value.
    func emit(_ item: PlanItem, _ catalog: inout Catalog) {
        let path = Int(item.path)
        switch item.test {
        case .equal, .notEqual:
            addValue(item.isLoose ? .any : .equal, path, item.constant, &catalog)
        case .member: emitMembers(of: item, &catalog)
        case .anyEqual: addValue(.element, path, item.constant, &catalog)
        case .has:
            if !item.isLoose { addValue(.element, path, item.constant, &catalog) }
            if item.constant.kind == .string {
                addPart(path, item.constant, isLoose: item.isLoose, &catalog)
            }
        case .begins: addPrefix(path, item.constant, isLoose: item.isLoose, &catalog)
        case .ends: addPart(path, item.constant, isLoose: item.isLoose, &catalog)
        case .like, .reference:
            if item.clue >= 0 { emit(tree.clues[Int(item.clue)], item, &catalog) }
        default: return
        }
    }

    private func emitMembers(of item: PlanItem, _ catalog: inout Catalog) {
        let path = Int(item.path)
        for index in Int(item.firstMember)..<Int(item.firstMember + item.memberCount) {
            addValue(.equal, path, tree.members[index], &catalog)
        }
        guard item.isLoose, item.memberCount > 0 else { return }
        // A list is compared with the members one by one, in order.
        let start = encoder.bytes.count
        for index in Int(item.firstMember)..<Int(item.firstMember + item.memberCount) {
            encoder.append(member: tree.members[index])
        }
        addValue(.sequence, path, encoder.string(from: start), &catalog)
    }

    private func emit(_ clue: KeyClue, _ item: PlanItem, _ catalog: inout Catalog) {
        let mark = keys.count
        let path = Int(item.path)
        let isLoose = item.isLoose
        switch clue {
        case .prefix(let text):
            let slot = isLoose ? encoder.raw(text) : encoder.string(text)
            addPrefix(path, slot, isLoose: isLoose, &catalog)
        case .part(let text):
            let slot = isLoose ? encoder.raw(text) : encoder.string(text)
            addPart(path, slot, isLoose: isLoose, &catalog)
        case .words(let words):
            for word in words { addWord(path, word, &catalog) }
            return
        case .elements(let values):
            for value in values {
                let slot = encode(value, in: item.view)
                addValue(.element, path, slot, &catalog)
            }
        case .near(let place, let metres): addPlaces(path, place, metres, &catalog)
        case .nearOne(let circles):
            for circle in circles { addPlaces(path, circle.centre, circle.metres, &catalog) }
        case .between(let low, let high): emitBounds(low, high, path, &catalog)
        case .links(let names):
            for name in names {
                var slot = encoder.raw(name)
                slot.kind = .reference
                addValue(.any, path, slot, &catalog)
            }
        }
        for index in mark..<keys.count { keys[index].isExact = false }
    }

    /// Adds the key of an interval that only single values can satisfy.
    private func emitBounds(
        _ low: FieldValue, _ high: FieldValue, _ path: Int, _ catalog: inout Catalog
    ) {
        let lower = encoder.encode(low)
        var interval = Interval(path: path, valueClass: lower.kind)
        if let bound = Interval.bound(lower) { interval.narrow(.greaterOrEqual, bound) }
        if let bound = Interval.bound(encoder.encode(high)) {
            interval.narrow(.lessOrEqual, bound)
        }
        emit(interval, &catalog)
    }

    func addValue(
        _ kind: KeyKind, _ path: Int, _ slot: FieldSlot, _ catalog: inout Catalog
    ) {
        let dimension = dimension(kind, path, slot.kind)
        if compartment != 0 || slot.length > KeyBytes.longest || slot.kind == .null {
            let start = begin()
            KeyBytes.append(slot, from: encoder.bytes.base, to: &encoder.bytes)
            addKey(dimension, start, isExact: slot.length <= KeyBytes.longest, &catalog)
        } else {
            addKey(
                dimension, Int(slot.offset), length: Int(slot.length), isExact: true, &catalog)
        }
    }

    private func addPrefix(
        _ path: Int, _ slot: FieldSlot, isLoose: Bool, _ catalog: inout Catalog
    ) {
        // No text begins with the empty text, but under other dialects' rules every text does.
        if slot.length == 0 {
            if isLoose { addPart(path, slot, isLoose: true, &catalog) }
            return
        }
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

    /// Adds the key of an interval: the cell in which it begins, or the open list if it is too wide
    /// for cells.
    ///
    /// If values are bags, an interval in a cell is also added to the list for bags.
    ///
    /// - Returns: The size of the cells; `nil` if the interval is empty or in the open list.
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
        if interval.isLoose {
            let hull = self.dimension(.hull, interval.path, interval.valueClass)
            addKey(hull, begin(), isExact: true, &catalog)
        }
        return cells
    }

    func dimension(_ kind: KeyKind, _ path: Int, _ valueClass: ValueClass) -> KeyDimension {
        KeyDimension(
            plan: UInt32(plan), kind: kind, path: UInt16(path), valueClass: valueClass,
            isCompartmented: compartment != 0)
    }
}
