import PredicateLanguage
import RelayModel

#if canImport(Glibc)
    import Glibc
#endif

/// The throughput that a hash table for one workload alone can reach.
///
/// The table is static, on bare memory, compares no keys, sorts no answers, and has the hashes of
/// the changes at hand.
///
/// It is the yardstick of `bench match`, not an index: it knows only the predicates that
/// ``BenchWorkload`` makes, and trusts 64 bits of hash. It does the same as the researchers' C++
/// program for this purpose, and is about as fast (docs/matching.md).
final class HashProbeBound {
    /// A subscription under a key, with at most one comparison left to do.
    struct Posting: BitwiseCopyable {
        /// The number of the subscription, and in the top four bits the kind of the comparison.
        var word: UInt32
        var low = Int32.min
        var high = Int32.max

        var test: UInt32 {
            get { word >> 28 }
            set { word = word & 0x0FFF_FFFF | newValue << 28 }
        }

        var order: Int32 { test == 4 ? low : .min }
    }

    /// A key's place in the table and its postings.
    struct Slot: BitwiseCopyable {
        var key: UInt64 = 0
        var start: UInt32 = 0
        var count: UInt32 = 0
    }

    /// A change: the hashes of its keys, and the values that postings compare.
    struct Change {
        var keys: Range<Int32>
        var price: Int32
        var score: Int32
        var status: Int32
        var isFlagged: Bool
    }

    private var slots = Column<Slot>(1)
    private var postings = Column<Posting>(1)
    private var mask = 0
    /// The keys of all changes, one change after another.
    private(set) var keys: ContiguousArray<UInt64> = []
    /// The first index of each part of the price's domain; narrow ranges are sorted by these
    /// parts.
    private var starts = Column<Int32>(1)
    private var lows = Column<Int32>(1)
    private var highs = Column<Int32>(1)
    private var ids = Column<UInt32>(1)
    private var hasGrid = false
    private var prefixLengths: [Int] = []
    /// The fields under which subscriptions are filed.
    private var keyedFields: Set<String> = []
    static let cells = 16_384
    /// The answers to the last change.
    private(set) var answer = Column<UInt32>(1 << 20)

    init(_ predicates: some Sequence<RecordPredicate>) {
        var filed: [(key: UInt64, posting: Posting)] = []
        var lengths: Set<Int> = []
        var ranges: [Posting] = []
        for (id, predicate) in predicates.enumerated() {
            for field in Self.fields(of: predicate.root) { keyedFields.insert(field) }
            let members: [RecordPredicate.Node] =
                if case .or(let members) = predicate.root { members } else { [predicate.root] }
            for member in members {
                let (keys, posting) = Self.filing(of: member, UInt32(id), &lengths)
                if keys.isEmpty { ranges.append(posting) }
                for key in keys { filed.append((key, posting)) }
            }
        }
        prefixLengths = lengths.sorted()
        build(filed)
        if !ranges.isEmpty { build(ranges) }
    }

    private func build(_ filed: [(key: UInt64, posting: Posting)]) {
        // The postings of a genre are sorted by their lowest price, so that a look-up can stop
        // early.
        let filed = filed.sorted { $0.posting.order < $1.posting.order }
        var capacity = 16
        while capacity * 3 < filed.count * 4 + 4 { capacity *= 2 }
        mask = capacity - 1
        slots = Column(capacity)
        for (key, _) in filed {
            let slot = place(key)
            slots[slot].key = key
            slots[slot].count += 1
        }
        var sum: UInt32 = 0
        for slot in 0..<capacity {
            slots[slot].start = sum
            sum += slots[slot].count
            slots[slot].count = 0
        }
        postings = Column(filed.count + 1)
        for (key, posting) in filed {
            let slot = place(key)
            postings[Int(slots[slot].start + slots[slot].count)] = posting
            slots[slot].count += 1
        }
    }

    private func build(_ ranges: [Posting]) {
        hasGrid = true
        starts = Column(Self.cells + 2)
        for range in ranges {
            for cell in Self.cell(range.low)...Self.cell(range.high) { starts[cell + 1] += 1 }
        }
        for cell in 0...Self.cells { starts[cell + 1] += starts[cell] }
        let count = Int(starts[Self.cells + 1])
        (lows, highs, ids) = (Column(count + 1), Column(count + 1), Column(count + 1))
        let ends = Column<Int32>(Self.cells + 2)
        for range in ranges {
            for cell in Self.cell(range.low)...Self.cell(range.high) {
                let place = Int(starts[cell] + ends[cell])
                (lows[place], highs[place]) = (range.low, range.high)
                ids[place] = range.word & 0x0FFF_FFFF
                ends[cell] += 1
            }
        }
    }

    /// Returns the slot of a key, or the free slot where it belongs.
    @inline(__always)
    private func place(_ key: UInt64) -> Int {
        var index = Int(truncatingIfNeeded: key) & mask
        while slots[index].key != 0, slots[index].key != key { index = (index + 1) & mask }
        return index
    }

    // MARK: Matching

    /// Collects the answers into ``answer``, and returns their number.
    func match(_ change: Change) -> Int {
        var end = 0
        var touched: UInt64 = 0
        for key in change.keys {
            touched &+= slots[Int(truncatingIfNeeded: keys[Int(key)]) & mask].key
        }
        answer[0] = UInt32(truncatingIfNeeded: touched)
        for key in change.keys {
            let slot = slots[place(keys[Int(key)])]
            for index in Int(slot.start)..<Int(slot.start) + Int(slot.count) {
                let posting = postings[index]
                if posting.test == 4, posting.low >= change.price || !change.isFlagged { break }
                answer[end] = posting.word & 0x0FFF_FFFF
                end += holds(posting, change) ? 1 : 0
            }
        }
        return hasGrid ? ranges(change.price, end) : end
    }

    @inline(__always)
    private func ranges(_ price: Int32, _ start: Int) -> Int {
        let cell = Self.cell(price)
        var end = start
        for index in Int(starts[cell])..<Int(starts[cell + 1]) {
            answer[end] = ids[index]
            end += (lows[index] <= price) && (price < highs[index]) ? 1 : 0
        }
        return end
    }

    @inline(__always)
    private func holds(_ posting: Posting, _ change: Change) -> Bool {
        switch posting.test {
        case 0: true
        case 1: posting.low <= change.price && change.price < posting.high
        case 2: change.score > posting.low
        case 3: change.status != posting.low
        default: true
        }
    }

    func change(_ fields: RecordFields) -> Change {
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

    private func add(_ key: UInt64) {
        keys.append(key)
    }

}

/// A zeroed run of values on bare memory, in huge pages if it is long.
final class Column<Value: BitwiseCopyable> {
    private let base: UnsafeMutablePointer<Value>

    init(_ count: Int) {
        let hugePage = 2 << 20
        let bytes = max(count * MemoryLayout<Value>.stride, 64)
        let isLong = bytes >= 2 * hugePage
        let unit = isLong ? hugePage : 64
        let length = (bytes + unit - 1) / unit * unit
        let memory = UnsafeMutableRawPointer.allocate(byteCount: length, alignment: unit)
        // MADV_HUGEPAGE
        if isLong { madvise(memory, length, 14) }
        memset(memory, 0, length)
        base = memory.bindMemory(to: Value.self, capacity: count)
    }

    deinit {
        base.deallocate()
    }

    @inline(__always)
    subscript(index: Int) -> Value {
        get { base[index] }
        _modify { yield &base[index] }
    }
}
