/// A line on which intervals are divided into cells; any monotone mapping of values to the line is
/// correct.
///
/// Numbers have two lines, so that both `500000 … 500100` and `0.1 % around 3 · 10^9` get cells of
/// suitable sizes without many levels in use. A change is looked up at every level in use.
enum CellLine: UInt8 {
    /// Numbers: even near zero, logarithmic further out.
    case logarithmic
    /// Numbers up to 2^32: even, in steps of 2^-20.
    case even
    /// Dates: even, in steps of 2^20 nanoseconds.
    case dates

    /// The bound of the magnitude of numbers on the even line.
    private static let evenReach = 0x1p32
    private static let evenScale = 0x1p20

    /// Returns the place of a value on the line; `nil` if the value is beyond the line.
    @inline(__always)
    func place(_ order: Int64) -> Int64? {
        switch self {
        case .dates: return order >> 20
        case .even:
            let number = OrderedNumber.number(of: order)
            guard number.magnitude < Self.evenReach else { return nil }
            return Int64((number * Self.evenScale).rounded(.down))
        case .logarithmic:
            let number = OrderedNumber.number(of: order)
            let size = Int64(bitPattern: (number.magnitude + 1).bitPattern) - Self.one
            return number < 0 ? -size : size
        }
    }

    /// Returns a value that is at most as great as every value whose place is at least `place`.
    @inline(__always)
    func floor(_ place: Int64) -> Int64 {
        switch self {
        case .dates:
            let (order, overflowed) = place.multipliedReportingOverflow(by: 1 << 20)
            return overflowed ? .min : order
        case .even: return OrderedNumber.order(of: Double(place) / Self.evenScale)
        case .logarithmic:
            // Two steps lower, because adding 1 rounds.
            let lower = place - 2
            guard lower.magnitude < Self.mostSize else { return .min }
            let size = Double(bitPattern: UInt64(Self.one) + lower.magnitude) - 1
            return OrderedNumber.order(of: lower < 0 ? -size : size)
        }
    }

    private static let one = Int64(bitPattern: (1.0).bitPattern)
    private static let mostSize = Double.greatestFiniteMagnitude.bitPattern - UInt64(one)
}

/// The size of the cells under which an interval is filed: each is 2^`level` places wide, which is
/// more than the interval's width.
///
/// An interval is filed once, under the cell in which it begins. A value is looked up in its own
/// cell and in the one before.
struct CellLevel: Hashable {
    var line: CellLine
    var level: Int

    init(line: CellLine, level: Int) {
        self.line = line
        self.level = level
    }

    /// The byte for this level in keys.
    var code: UInt8 { UInt8(level) | line.rawValue << 6 }

    @inline(__always)
    init(code: UInt8) {
        line = CellLine(rawValue: code >> 6) ?? .dates
        level = Int(code & 63)
    }

    /// Returns the lowest lower bound that an interval in cells of this level can have if it
    /// contains the value.
    @inline(__always)
    func floor(_ order: Int64) -> Int64 {
        guard let place = line.place(order) else { return .min }
        return line.floor(place - (1 << Int64(level)) + 1)
    }
}

/// The levels in use for one field, as bits for each line.
struct CellLevels: Codable {
    private(set) var masks = InlineArray<3, UInt64>(repeating: 0)

    /// The maximum number of levels in use on one line; beyond it, wider cells are used.
    static let most = 12

    init() {}

    init(from decoder: any Decoder) throws {
        for (index, mask) in try [UInt64](from: decoder).enumerated() where index < masks.count {
            masks[index] = mask
        }
    }

    func encode(to encoder: any Encoder) throws {
        try masks.indices.map { masks[$0] }.encode(to: encoder)
    }

    @inline(__always)
    subscript(line: CellLine) -> UInt64 { masks[Int(line.rawValue)] }

    /// Adds a level, and returns whether it is new.
    mutating func insert(_ cells: CellLevel) -> Bool {
        let bit: UInt64 = 1 << UInt64(cells.level)
        defer { masks[Int(cells.line.rawValue)] |= bit }
        return self[cells.line] & bit == 0
    }

    /// Returns the best size of cells for an interval: one that is in use, otherwise one on the
    /// line with fewer levels in use; `nil` if the interval is too wide for cells, or needs a level
    /// that cannot be added.
    func choose(for interval: borrowing Interval) -> CellLevel? {
        if interval.valueClass == .date {
            return interval.cells(.dates).flatMap { isOpen($0) ? $0 : wider($0) }
        }
        let even = interval.cells(.even)
        if let even, isInUse(even) { return even }
        let logarithmic = interval.cells(.logarithmic)
        if let logarithmic, isInUse(logarithmic) { return logarithmic }
        let counts = (self[.even].nonzeroBitCount, self[.logarithmic].nonzeroBitCount)
        let (first, second) = counts.0 <= counts.1 ? (even, logarithmic) : (logarithmic, even)
        if let first, isOpen(first) { return first }
        if let second, isOpen(second) { return second }
        return even.flatMap(wider) ?? logarithmic.flatMap(wider)
    }

    private func isInUse(_ cells: CellLevel) -> Bool {
        self[cells.line] >> UInt64(cells.level) & 1 == 1
    }

    private func isOpen(_ cells: CellLevel) -> Bool {
        isInUse(cells) || self[cells.line].nonzeroBitCount < Self.most
    }

    /// Returns the next wider level in use.
    private func wider(_ cells: CellLevel) -> CellLevel? {
        let above = self[cells.line] >> UInt64(cells.level)
        if above == 0 { return nil }
        return CellLevel(line: cells.line, level: cells.level + above.trailingZeroBitCount)
    }
}
