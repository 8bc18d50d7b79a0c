import PredicateLanguage
import RelayModel

/// What a hash table made for one workload alone can reach: static, without keys to compare,
/// without
/// sorting its answers, with the hashes of the changes at hand.
///
/// It is the yardstick of `belfry bench match`, not an index: it knows just the predicates that
/// ``BenchWorkload`` makes, and trusts 64 bits of hash.
struct HashProbeBound {
    /// A subscription under a key, with at most one thing left to compare.
    struct Posting {
        /// The number of the subscription, and above it what is compared.
        var word: UInt32
        var low = Int32.min
        var high = Int32.max

        var test: UInt32 {
            get { word >> 28 }
            set { word = word & 0x0FFF_FFFF | newValue << 28 }
        }
    }

    /// A key's place in the table and its postings.
    struct Slot {
        var key: UInt64 = 0
        var start: UInt32 = 0
        var count: UInt32 = 0
    }

    /// A change: the hashes of its keys, and the three values that postings compare.
    struct Change {
        var keys: Range<Int32>
        var price: Int32
        var score: Int32
        var status: Int32
        var isFlagged: Bool
    }

    private var slots: ContiguousArray<Slot> = []
    /// The keys of all changes, one change after the other.
    private var keys: ContiguousArray<UInt64> = []
    private var postings: ContiguousArray<Posting> = []
    private var mask = 0
    /// Narrow ranges by the thousandth of the price's domain in which they lie.
    private var grid: ContiguousArray<ContiguousArray<Posting>> = []
    private var prefixLengths: [Int] = []
    /// The fields by which something is filed.
    private var keyedFields: Set<String> = []
    private static let cells = 16_384

    init(_ predicates: some Sequence<RecordPredicate>) {
        var filed: [(key: UInt64, posting: Posting)] = []
        var lengths: Set<Int> = []
        grid = ContiguousArray(repeating: [], count: Self.cells)
        var hasGrid = false
        for (id, predicate) in predicates.enumerated() {
            for field in Self.fields(of: predicate.root) { keyedFields.insert(field) }
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
        slots = ContiguousArray(repeating: Slot(), count: capacity)
        for (key, _) in filed {
            let slot = place(key)
            slots[slot].key = key
            slots[slot].count += 1
        }
        var sum: UInt32 = 0
        for slot in slots.indices {
            slots[slot].start = sum
            sum += slots[slot].count
            slots[slot].count = 0
        }
        postings = ContiguousArray(repeating: Posting(word: 0), count: filed.count)
        for (key, posting) in filed {
            let slot = place(key)
            postings[Int(slots[slot].start + slots[slot].count)] = posting
            slots[slot].count += 1
        }
    }

    /// The slot of a key, or the free one where it belongs.
    @inline(__always)
    private func place(_ key: UInt64) -> Int {
        var index = Int(truncatingIfNeeded: key) & mask
        while slots[index].key != 0, slots[index].key != key { index = (index + 1) & mask }
        return index
    }

    // MARK: Matching

    func match(_ change: Change, into ids: inout [UInt32]) {
        ids.removeAll(keepingCapacity: true)
        for key in change.keys {
            let slot = slots[place(keys[Int(key)])]
            for index in Int(slot.start)..<Int(slot.start) + Int(slot.count) {
                let posting = postings[index]
                if holds(posting, change) { ids.append(posting.word & 0x0FFF_FFFF) }
            }
        }
        if grid.isEmpty { return }
        for posting in grid[Self.cell(change.price)]
        where posting.low <= change.price && change.price < posting.high {
            ids.append(posting.word & 0x0FFF_FFFF)
        }
    }

    @inline(__always)
    private func holds(_ posting: Posting, _ change: Change) -> Bool {
        switch posting.test {
        case 0: true
        case 1: posting.low <= change.price && change.price < posting.high
        case 2: change.score > posting.low
        case 3: change.status != posting.low
        default: change.isFlagged && change.price > posting.low
        }
    }

    mutating func change(_ fields: RecordFields) -> Change {
        let start = Int32(keys.count)
        for name in ["artist", "owner", "genre"] where keyedFields.contains(name) {
            if let value = fields[name] { add(Self.key(name, value)) }
        }
        if keyedFields.contains("tags"), case .list(let tags)? = fields["tags"] {
            for tag in tags { add(Self.key("tags", tag)) }
        }
        if case .string(let title)? = fields["title"] {
            for length in prefixLengths where length <= title.utf8.count {
                add(Self.key("title", .string(String(title.prefix(length)))))
            }
        }
        var flagged = false
        if case .bool(let flag)? = fields["flag"] { flagged = flag }
        return Change(
            keys: start..<Int32(keys.count), price: Self.cents(fields["price"]),
            score: Self.number(fields["score"]), status: Self.status(fields["status"]),
            isFlagged: flagged)
    }

    private mutating func add(_ key: UInt64) {
        keys.append(key)
    }

    // MARK: Reading what the workload makes

    private static func filing(
        of node: RecordPredicate.Node, _ id: UInt32, _ lengths: inout Set<Int>
    ) -> ([UInt64], Posting) {
        var keys: [UInt64] = []
        var posting = Posting(word: id)
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
                posting.low = cents(value)
                posting.test = max(posting.test, 1)
            case ("price", _):
                posting.high = cents(value)
                posting.test = max(posting.test, 1)
            case ("score", _): (posting.low, posting.test) = (number(value), 2)
            case ("status", _): (posting.low, posting.test) = (status(value), 3)
            default: continue
            }
        }
        return (keys, posting)
    }

    private static func fields(of node: RecordPredicate.Node) -> [String] {
        switch node {
        case .and(let nodes), .or(let nodes): nodes.flatMap(fields)
        case .comparison(let comparison):
            if case .path(let path) = comparison.left {
                path.fieldName.map { [$0] } ?? []
            } else {
                []
            }
        default: []
        }
    }

    private static func key(_ field: String, _ value: FieldValue) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        if case .string(let text) = value {
            for byte in field.utf8 { hash = SplitMix.mix(hash ^ UInt64(byte)) }
            for byte in text.utf8 { hash = SplitMix.mix(hash ^ UInt64(byte)) }
        }
        return hash | 1
    }

    private static func cell(_ price: Int32) -> Int {
        Int(Int64(price) * Int64(cells) / 100_000_001)
    }

    private static func cents(_ value: FieldValue?) -> Int32 {
        if case .double(let price)? = value { Int32((price * 100).rounded()) } else { 0 }
    }

    private static func number(_ value: FieldValue?) -> Int32 {
        if case .integer(let number)? = value { Int32(number) } else { 0 }
    }

    private static func status(_ value: FieldValue?) -> Int32 {
        guard case .string(let text)? = value else { return -1 }
        return Int32(text.dropFirst()) ?? -1
    }
}
