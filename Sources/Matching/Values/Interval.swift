/// What the comparisons of a conjunction leave of one field's values: numbers or dates between two
/// bounds, both included.
struct Interval {
    var path: Int
    var valueClass: ValueClass
    /// Whether values are bags: one value may satisfy the lower bound, and another the upper.
    var isLoose = false
    var low: Int64 = .min
    var high: Int64 = .max
    /// The size of the cells under which it is filed, where that is its key.
    var inCells: CellLevel?
    /// The conjuncts that it stands for, as bits; only the first 64 are drawn together.
    var conjuncts: UInt64 = 0

    /// No value lies inside.
    var isEmpty: Bool { low > high }
    var isBoundedBelow: Bool { low != .min }
    var isBoundedAbove: Bool { high != .max }

    /// Narrows to what satisfies one comparison.
    mutating func narrow(_ test: RowTest, _ bound: Int64) {
        switch test {
        case .less: high = min(high, bound - 1)
        case .lessOrEqual: high = min(high, bound)
        case .greater: low = max(low, bound + 1)
        default: low = max(low, bound)
        }
    }

    /// Narrows to what another interval on the same path leaves as well.
    mutating func unite(with other: Interval) {
        low = max(low, other.low)
        high = min(high, other.high)
        conjuncts |= other.conjuncts
    }

    /// The order of a bound, if 64 bits hold it exactly, so that intervals need no verification.
    static func bound(_ slot: FieldSlot) -> Int64? {
        switch slot.kind {
        case .number:
            let number = OrderedNumber(order: slot.order, tail: slot.tail)
            return number.isPlain && number.tail == 0 ? number.order : nil
        // Constants beyond the exact moments are no rows' business.
        case .date: return slot.order
        default: return nil
        }
    }

    /// The size of cells on a line that is just wider than the interval; `nil` if it is too wide.
    func cells(_ line: CellLine) -> CellLevel? {
        guard isBoundedBelow, isBoundedAbove, !isEmpty, let first = line.place(low),
            let last = line.place(high)
        else { return nil }
        let (width, overflowed) = last.subtractingReportingOverflow(first)
        guard !overflowed, width < 1 << 60 else { return nil }
        let level = width == 0 ? 0 : Int64.bitWidth - width.leadingZeroBitCount
        return CellLevel(line: line, level: level)
    }
}
