import PredicateLanguage
import RelayModel

/// What a hash table made for one workload alone can reach: static, without keys to compare,
/// without sorting its answers, with the hashes of the changes at hand.
///
/// It is the yardstick of `belfry bench match`, not an index: it knows just the predicates that
/// ``BenchWorkload`` makes, and trusts 64 bits of hash.
struct HashProbeBound {
    /// A subscription under a key, with at most one thing left to compare.
    struct Posting {
        var id: UInt32
        var test: UInt8 = 0
        var low = -Double.infinity
        var high = Double.infinity
    }

    /// A change: the hashes of its keys, and the three values that postings compare.
    struct Change {
        var keys: [UInt64]
        var values: (price: Double, score: Double, status: Double)
        var isFlagged: Bool
    }

    private var slots: ContiguousArray<UInt64> = []
    private var starts: ContiguousArray<UInt32> = []
    private var postings: ContiguousArray<Posting> = []
    private var mask = 0
    /// Narrow ranges by the thousandth of the price's domain in which they lie.
    private var grid: ContiguousArray<ContiguousArray<Posting>> = []
    private var prefixLengths: [Int] = []
    private static let cells = 16_384

    init(_ predicates: some Sequence<RecordPredicate>) {
        var filed: [(key: UInt64, posting: Posting)] = []
        var lengths: Set<Int> = []
        grid = ContiguousArray(repeating: [], count: Self.cells)
        var hasGrid = false
        for (id, predicate) in predicates.enumerated() {
            let members: [RecordPredicate.Node] =
                if case .or(let members) = predicate.root { members } else { [predicate.root] }
            for member in members {
                let (keys, posting) = Self.filing(of: member, UInt32(id), &lengths)
                if keys.isEmpty {
                    hasGrid = true
                    for cell in Self.cell(posting.low)...Self.cell(posting.high) {
                        grid[cell].append(posting)
                    }
                }
                for key in keys { filed.append((key, posting)) }
            }
        }
        if !hasGrid { grid = [] }
        prefixLengths = lengths.sorted()
        build(filed)
    }

    private mutating func build(_ filed: [(key: UInt64, posting: Posting)]) {
        var capacity = 16
        while capacity * 3 < filed.count * 4 + 4 { capacity *= 2 }
        mask = capacity - 1
        slots = ContiguousArray(repeating: 0, count: capacity)
        starts = ContiguousArray(repeating: 0, count: capacity + 1)
        var counts = ContiguousArray<UInt32>(repeating: 0, count: capacity)
        for (key, _) in filed {
            let slot = find(key) ?? insert(key)
            counts[slot] += 1
        }
        var sum: UInt32 = 0
        for slot in 0..<capacity {
            starts[slot] = sum
            sum += counts[slot]
            counts[slot] = starts[slot]
        }
        starts[capacity] = sum
        postings = ContiguousArray(repeating: Posting(id: 0), count: filed.count)
        for (key, posting) in filed {
            guard let slot = find(key) else { continue }
            postings[Int(counts[slot])] = posting
            counts[slot] += 1
        }
    }

    private mutating func insert(_ key: UInt64) -> Int {
        var index = Int(truncatingIfNeeded: key) & mask
        while slots[index] != 0 { index = (index + 1) & mask }
        slots[index] = key
        return index
    }

    @inline(__always)
    private func find(_ key: UInt64) -> Int? {
        var index = Int(truncatingIfNeeded: key) & mask
        while slots[index] != 0 {
            if slots[index] == key { return index }
            index = (index + 1) & mask
        }
        return nil
    }

    // MARK: Matching

    func match(_ change: Change, into ids: inout [UInt32]) {
        ids.removeAll(keepingCapacity: true)
        for key in change.keys {
            guard let slot = find(key) else { continue }
            for index in Int(starts[slot])..<Int(starts[slot + 1]) {
                let posting = postings[index]
                if holds(posting, change) { ids.append(posting.id) }
            }
        }
        if grid.isEmpty { return }
        let price = change.values.price
        for posting in grid[Self.cell(price)] where posting.low <= price && price < posting.high {
            ids.append(posting.id)
        }
    }

    @inline(__always)
    private func holds(_ posting: Posting, _ change: Change) -> Bool {
        switch posting.test {
        case 0: true
        case 1: posting.low <= change.values.price && change.values.price < posting.high
        case 2: change.values.score > posting.low
        case 3: change.values.status != posting.low
        default: change.isFlagged && change.values.price > posting.low
        }
    }

    func change(_ fields: RecordFields) -> Change {
        var keys: [UInt64] = []
        for name in ["artist", "owner", "genre"] {
            if let value = fields[name] { keys.append(Self.key(name, value)) }
        }
        if case .list(let tags)? = fields["tags"] {
            keys.append(contentsOf: tags.map { Self.key("tags", $0) })
        }
        if case .string(let title)? = fields["title"] {
            for length in prefixLengths where length <= title.utf8.count {
                keys.append(Self.key("title", .string(String(title.prefix(length)))))
            }
        }
        var flagged = false
        if case .bool(let flag)? = fields["flag"] { flagged = flag }
        return Change(
            keys: keys,
            values: (
                Self.number(fields["price"]), Self.number(fields["score"]),
                Self.status(fields["status"])
            ),
            isFlagged: flagged)
    }

    // MARK: Reading what the workload makes

    private static func filing(
        of node: RecordPredicate.Node, _ id: UInt32, _ lengths: inout Set<Int>
    ) -> ([UInt64], Posting) {
        var keys: [UInt64] = []
        var posting = Posting(id: id)
        let members: [RecordPredicate.Node] = if case .and(let all) = node { all } else { [node] }
        for member in members {
            guard case .comparison(let comparison) = member,
                case .path(let path) = comparison.left, let field = path.fieldName,
                let value = comparison.right.literal
            else { continue }
            switch (field, comparison.comparator) {
            case ("artist", .in):
                if case .list(let values) = value { keys = values.map { key(field, $0) } }
            case ("artist", .equal), ("owner", .equal), ("genre", .equal), ("tags", .contains):
                keys = [key(field, value)]
                if field == "genre" { posting.test = 4 }
            case ("title", _):
                keys = [key(field, value)]
                if case .string(let text) = value { lengths.insert(text.utf8.count) }
            case ("price", .greaterOrEqual), ("price", .greater):
                posting.low = number(value)
                posting.test = max(posting.test, 1)
            case ("price", _):
                posting.high = number(value)
                posting.test = max(posting.test, 1)
            case ("score", _): (posting.low, posting.test) = (number(value), 2)
            case ("status", _): (posting.low, posting.test) = (status(value), 3)
            default: continue
            }
        }
        return (keys, posting)
    }

    private static func key(_ field: String, _ value: FieldValue) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        if case .string(let text) = value {
            for byte in field.utf8 { hash = SplitMix.mix(hash ^ UInt64(byte)) }
            for byte in text.utf8 { hash = SplitMix.mix(hash ^ UInt64(byte)) }
        }
        return hash | 1
    }

    private static func cell(_ price: Double) -> Int {
        min(max(Int(price / 1_000_000 * Double(cells)), 0), cells - 1)
    }

    private static func number(_ value: FieldValue?) -> Double {
        switch value {
        case .double(let number): number
        case .integer(let number): Double(number)
        default: 0
        }
    }

    private static func status(_ value: FieldValue?) -> Double {
        guard case .string(let text)? = value else { return -1 }
        return Double(text.dropFirst()) ?? -1
    }
}
