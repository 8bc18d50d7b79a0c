import PredicateLanguage
import RelayModel

// Estimates of what filing under certain keys would cost.
extension Planner {
    /// Estimates the share of changes inside an interval from its width on the line of cells,
    /// relative to ten octaves for numbers or a year for dates.
    func estimate(_ interval: Interval) -> Double {
        if interval.isEmpty { return 0 }
        let line: CellLine = interval.valueClass == .date ? .dates : .logarithmic
        guard interval.isBoundedBelow, interval.isBoundedAbove,
            let low = line.place(interval.low), let high = line.place(interval.high)
        else { return 0.5 }
        let whole = interval.valueClass == .date ? 3e10 : 0x1p52 * 10
        return min(0.4, (Double(high) - Double(low)) / whole + 0.0005)
    }

    /// Estimates the cost of filing an item of ``tree`` under its own keys; returns `nil` if it has
    /// none.
    func estimate(_ number: Int, _ catalog: inout Catalog) -> Access? {
        work += 1
        if work > Self.mostWork { return nil }
        let item = tree.items[number]
        switch item.kind {
        case .constant:
            return item.holds == item.isNegated
                ? Access(expected: 0, isExact: true, isSafe: true, keys: 0) : nil
        case .comparison: return estimate(item, &catalog)
        case .opaque: return nil
        case .all, .any:
            return item.isConjunction
                ? estimateAll(number, &catalog) : estimateAny(number, &catalog)
        }
    }

    private func estimateAny(_ group: Int, _ catalog: inout Catalog) -> Access? {
        var sum = Access(expected: 0, isExact: true, isSafe: true, keys: 0)
        let end = Int(tree.items[group].end)
        var member = group + 1
        while member < end {
            guard let access = estimate(member, &catalog) else { return nil }
            sum.expected += access.expected
            sum.isExact = sum.isExact && access.isExact
            sum.isSafe = sum.isSafe && access.isSafe
            sum.keys += access.keys
            if sum.keys > Self.mostKeys { return nil }
            member = Int(tree.items[member].end)
        }
        return sum
    }

    private func estimateAll(_ group: Int, _ catalog: inout Catalog) -> Access? {
        var best: Access?
        let end = Int(tree.items[group].end)
        var member = group + 1
        while member < end {
            if let access = estimate(member, &catalog),
                best.map({ access.expected < $0.expected }) ?? true
            {
                best = access
            }
            member = Int(tree.items[member].end)
        }
        best?.isExact = false
        best?.isSafe = false
        return best
    }

    private func estimate(_ item: PlanItem, _ catalog: inout Catalog) -> Access? {
        if let interval = interval(of: item) {
            return Access(
                expected: expectedHits(of: interval, &catalog), isExact: false, isSafe: false,
                keys: 1)
        }
        guard item.hasKeys(tree.clues) else { return nil }
        let mark = keys.count
        isEstimating = true
        emit(item, &catalog)
        isEstimating = false
        defer { keys.count = mark }
        work += keys.count - mark
        var access = Access(
            expected: 0, isExact: true, isSafe: item.isSafe(tree.clues), keys: keys.count - mark)
        for index in mark..<keys.count {
            access.expected += expected(keys[index], isWeighed: true)
            access.isExact = access.isExact && keys[index].isExact
        }
        return access
    }

    /// Returns the interval of values for which a comparison by order holds, if 64-bit bounds can
    /// express it.
    func interval(of item: PlanItem) -> Interval? {
        guard !item.isNegated, item.isOrdering, let bound = Interval.bound(item.constant) else {
            return nil
        }
        var interval = Interval(path: Int(item.path), valueClass: item.constant.kind)
        interval.isLoose = item.isLoose
        interval.narrow(item.test, bound)
        if item.hasUpper {
            guard let upper = Interval.bound(item.upper) else { return nil }
            interval.narrow(.lessOrEqual, upper)
        }
        return interval
    }

    // MARK: Expectations

    /// Returns the share of changes that hit the key of an interval: observed, if there are enough
    /// samples, or else estimated from the width.
    func expectedHits(of interval: Interval, _ catalog: inout Catalog) -> Double {
        guard selectivity.knows(plan: plan), !interval.isEmpty else {
            return estimate(interval)
        }
        let mark = keys.count
        isEstimating = true
        emit(interval, &catalog)
        isEstimating = false
        defer { keys.count = mark }
        return keys.count > mark ? expected(keys[mark], isWeighed: false) : estimate(interval)
    }

    func expectedHits() -> Double {
        var sum = 0.0
        for index in 0..<keys.count { sum += expected(keys[index], isWeighed: false) }
        return min(sum, 1)
    }

    /// Returns the share of changes that hit a key.
    ///
    /// If `isWeighed` is true, the estimate is higher for keys with many postings, which is the
    /// only evidence before changes arrive.
    func expected(_ key: PlannedKey, isWeighed: Bool) -> Double {
        if let expected = selectivity.expected(key.hash, plan: plan) { return expected }
        let guess = guess(key)
        guard isWeighed else { return guess }
        let slot = store.slot(
            key.hash, key.dimension, UnsafePointer(encoder.bytes.base + Int(key.offset)),
            Int(key.length))
        guard slot >= 0 else { return guess }
        let block = PostingBlock(store.arena, KeyTable.block(of: store.table.slots[slot]))
        return guess * (1 + Double(min(block.count, 10)) * 0.2)
    }

    private func guess(_ key: PlannedKey) -> Double {
        let dimension = keyDimensions[Int(key.dimension)]
        switch dimension.kind {
        case .equal, .element, .any:
            let isNumber = dimension.valueClass == .number && key.length >= 8
            let order = isNumber ? keyOrder(key) : 2
            let guess = Selectivity.guess(
                dimension.valueClass, order: order, length: Int(key.length))
            return dimension.kind == .element ? min(guess * 4, 1) : guess
        // Fields that are compared with numbers seldom hold lists of numbers.
        case .hull: return 0
        case .sequence: return 0.001
        case .prefix: return key.length < 3 ? 0.05 : 0.005
        case .gram: return 0.05
        case .token, .place: return 0.01
        case .cell: return 0.02
        case .text, .open: return 0.5
        case .every: return 1
        }
    }

    private func keyOrder(_ key: PlannedKey) -> Int64 {
        var order: UInt64 = 0
        for index in 0..<8 {
            let byte = encoder.bytes[Int(key.offset + key.length) - 8 + index]
            order |= UInt64(byte) << UInt64(8 * index)
        }
        return Int64(bitPattern: order)
    }
}
