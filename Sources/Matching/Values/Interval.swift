/// The values of one field that the comparisons of a conjunction allow: numbers or dates between
/// two bounds, inclusive.
struct Interval {
    var path: Int
    var valueClass: ValueClass
    /// Whether values are bags, in which one value may satisfy the lower bound and another the
    /// upper.
    var isLoose = false
    var low: Int64 = .min
    var high: Int64 = .max
    /// The size of the cells, if the interval is filed under a cell.
    var inCells: CellLevel?
    /// The conjuncts that the interval stands for, as bits; only the first 64 are combined.
    var conjuncts: UInt64 = 0

    /// Whether no value is inside.
    var isEmpty: Bool { low > high }
    var isBoundedBelow: Bool { low != .min }
    var isBoundedAbove: Bool { high != .max }

    /// Narrows the interval to the values that satisfy one comparison.
    mutating func narrow(_ test: RowTest, _ bound: Int64) {
        switch test {
        case .less: high = min(high, bound - 1)
        case .lessOrEqual: high = min(high, bound)
        case .greater: low = max(low, bound + 1)
        default: low = max(low, bound)
        }
    }

    /// Narrows the interval to the values that are also in another interval on the same path.
    mutating func unite(with other: Interval) {
        low = max(low, other.low)
        high = min(high, other.high)
        conjuncts |= other.conjuncts
    }

    /// Returns the order of a bound if 64 bits hold it exactly, so that the interval needs no
    /// further verification.
    static func bound(_ slot: FieldSlot) -> Int64? {
        switch slot.kind {
        case .number:
            let number = OrderedNumber(order: slot.order, tail: slot.tail)
            return number.isPlain && number.tail == 0 ? number.order : nil
        // Dates outside the exact range never get here, because rows cannot hold them.
        case .date: return slot.order
        default: return nil
        }
    }

    /// Returns the smallest cells on a line that are wider than the interval; `nil` if it is too
    /// wide for cells.
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
