import RelayModel

/// What the comparisons of a conjunction leave of one field's values: numbers or dates between two
/// bounds, both included.
struct Interval {
    var path: Int
    var valueClass: ValueClass
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

    /// The order of a bound, if 64 bits hold it exactly, so that intervals need no verification.
    static func bound(_ value: FieldValue) -> (ValueClass, Int64)? {
        switch value {
        case .bool(let flag): return (.number, OrderedNumber(flag ? 1 : 0).order)
        case .integer(let integer):
            let number = OrderedNumber(integer)
            return number.isPlain && number.tail == 0 ? (.number, number.order) : nil
        case .double(let double):
            guard let number = OrderedNumber(double), number.isPlain else { return nil }
            return (.number, number.order)
        case .timestamp(let moment): return moment.isExact ? (.date, moment.order) : nil
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
