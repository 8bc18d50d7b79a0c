import RelayModel

/// The content of a file of the time zone database (RFC 9636): how far a zone's clocks are ahead of
/// UTC from which moment on, and the rule after the last listed change.
struct ZoneRules: Sendable, Hashable {
    /// The moments of the changes, in seconds since 1970, and the offsets from then on.
    private let changes: [(from: Int64, offset: Int64)]
    /// The offset before the first change.
    private let first: Int64
    /// The rule after the last change, or `nil` if nothing changes any more.
    private let rule: YearlyRule?

    /// Parses a file.
    ///
    /// Returns `nil` if it is not one, or an old one without the times after 2038.
    init?(_ bytes: [UInt8]) {
        var reader = ZoneReader(bytes)
        // The first part is for readers that only support 32 bits.
        guard let old = reader.header(), old.version >= 2, reader.skip(old.bytes(perTime: 4)),
            let header = reader.header(), header.types > 0,
            let times = reader.numbers(header.times, bytes: 8),
            let kinds = reader.bytes(header.times), let types = reader.bytes(6 * header.types),
            reader.skip(header.names + 12 * header.leaps + header.standards + header.universals),
            let text = reader.footer()
        else { return nil }
        let offsets = (0..<header.types).map { type in
            Int64(ZoneReader.number(types[(6 * type)..<(6 * type + 4)]))
        }
        guard kinds.allSatisfy({ Int($0) < offsets.count }), times == times.sorted() else {
            return nil
        }
        first = offsets[0]
        changes = zip(times, kinds).map { ($0, offsets[Int($1)]) }
        if text.isEmpty {
            rule = nil
        } else {
            guard let known = YearlyRule(text) else { return nil }
            rule = known
        }
    }

    /// Returns how many seconds the clocks are ahead of UTC, at a moment in seconds since 1970.
    ///
    /// - Complexity: O(log *n*) in the number of changes.
    func offset(at moment: Int64) -> Int64 {
        var (low, high) = (0, changes.count)
        while low < high {
            let middle = (low + high) / 2
            if changes[middle].from <= moment { low = middle + 1 } else { high = middle }
        }
        if low == changes.count, let rule { return rule.offset(at: moment) }
        return low == 0 ? first : changes[low - 1].offset
    }

    static func == (one: ZoneRules, other: ZoneRules) -> Bool {
        one.first == other.first && one.rule == other.rule
            && one.changes.elementsEqual(other.changes, by: ==)
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(first)
        hasher.combine(rule)
        hasher.combine(changes.count)
    }
}

/// Reads the parts of a file of the database one after the other.
private struct ZoneReader {
    /// The counts of a header (RFC 9636 §3.1).
    struct Header {
        let version: Int
        let universals, standards, leaps, times, types, names: Int

        /// Returns the number of bytes after the header, with times of `size` bytes.
        func bytes(perTime size: Int) -> Int {
            times * (size + 1) + types * 6 + names + leaps * (size + 4) + standards + universals
        }
    }

    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    mutating func header() -> Header? {
        guard let start = bytes(20), start.starts(with: Array("TZif".utf8)),
            let counts = numbers(6, bytes: 4), counts.allSatisfy({ (0...10_000).contains($0) })
        else { return nil }
        let version = start[start.startIndex + 4]
        let known = counts.map { Int($0) }
        return Header(
            version: version == 0 ? 1 : Int(version) - Int(UInt8(ascii: "0")),
            universals: known[0], standards: known[1], leaps: known[2], times: known[3],
            types: known[4], names: known[5])
    }

    /// Reads the rule between two line ends.
    mutating func footer() -> String? {
        let end = UInt8(ascii: "\n")
        guard rest.popFirst() == end, let last = rest.firstIndex(of: end) else { return nil }
        return String(decoding: rest[..<last], as: UTF8.self)
    }

    mutating func skip(_ count: Int) -> Bool { bytes(count) != nil }

    mutating func bytes(_ count: Int) -> [UInt8]? {
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func numbers(_ count: Int, bytes size: Int) -> [Int64]? {
        guard let all = bytes(count * size) else { return nil }
        return (0..<count).map { index in
            let part = all[(index * size)..<((index + 1) * size)]
            return size == 4 ? Int64(Self.number(part)) : Self.wide(part)
        }
    }

    static func number(_ bytes: ArraySlice<UInt8>) -> Int32 {
        Int32(bitPattern: bytes.reduce(0) { $0 << 8 | UInt32($1) })
    }

    private static func wide(_ bytes: ArraySlice<UInt8>) -> Int64 {
        Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }
}
