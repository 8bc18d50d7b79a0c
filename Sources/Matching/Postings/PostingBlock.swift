#if canImport(Glibc)
    import Glibc
#endif

/// The kind of content in a block.
enum BlockKind: UInt32 {
    /// Subscriptions that the key proves: one word each, in ascending order.
    case plain
    /// Subscriptions with an interval on one path: six words each.
    case range
    /// Many such intervals: a directory of chunks in the order of their lower bounds.
    case directory
    /// Subscriptions with a program: two words each, in ascending order of the program.
    case guarded
    /// One chunk of a directory.
    case chunk
    /// The subscriptions that share one posting: one word each, in ascending order.
    case group
    /// A program.
    case program
    /// The keys under which one subscription is filed.
    case filing
    /// Intervals that begin in one cell, in ascending order of their lower bounds: six words each.
    case sorted

    /// Whether a word about the intervals' path comes before the postings.
    @inline(__always)
    var hasIntervals: Bool { self == .range || self == .directory || self == .sorted }
}

/// A view of one block in the arena.
///
/// The block has two header words; then, if it is the first block of a key, the key's dimension and
/// bytes; for intervals a word about their path; then the postings. The last word is the offset of
/// the key's next block, if there is one.
///
/// ```
/// | class 7 · kind 4 · has next 1 · … · key length 16 | count | dimension | key … | (path) |
/// postings … | (next) |
/// ```
struct PostingBlock {
    let base: UnsafeMutablePointer<UInt32>
    let offset: UInt32

    /// The flag in the first word that the last word is the offset of another block.
    static let nextFlag: UInt32 = 1 << 11

    @inline(__always)
    init(_ arena: WordArena, _ offset: UInt32) {
        base = arena.base + Int(offset)
        self.offset = offset
    }

    @inline(__always)
    var sizeClass: Int { Int(base[0] & 127) }
    @inline(__always)
    var kind: BlockKind { BlockKind(rawValue: base[0] >> 7 & 15) ?? .plain }
    @inline(__always)
    var hasNext: Bool { base[0] & Self.nextFlag != 0 }
    @inline(__always)
    var keyLength: Int { Int(base[0] >> 16) }
    @inline(__always)
    var count: Int {
        get { Int(base[1]) }
        nonmutating set { base[1] = UInt32(newValue) }
    }
    @inline(__always)
    var dimension: UInt32 { base[2] }
    @inline(__always)
    var key: UnsafeMutablePointer<UInt8> {
        UnsafeMutableRawPointer(base + 3).assumingMemoryBound(to: UInt8.self)
    }
    /// The number of words before the postings.
    @inline(__always)
    var headerWords: Int {
        3 + (keyLength + 3) >> 2 + (kind.hasIntervals ? 1 : 0)
    }
    @inline(__always)
    var postings: UnsafeMutablePointer<UInt32> { base + headerWords }
    /// The path, value class and direction of the intervals.
    @inline(__always)
    var interval: UInt32 {
        get { base[headerWords - 1] }
        nonmutating set { base[headerWords - 1] = newValue }
    }
    /// The number of words of the whole block.
    @inline(__always)
    var words: Int { WordArena.words(ofClass: sizeClass) }
    /// The number of words available for postings.
    @inline(__always)
    var room: Int { words - headerWords - (hasNext ? 1 : 0) }
    /// The number of words of one posting.
    @inline(__always)
    var stride: Int { Self.stride(kind) }
    /// The offset of the key's next block; 0 at the end.
    @inline(__always)
    var next: UInt32 { hasNext ? base[words - 1] : 0 }

    static func stride(_ kind: BlockKind) -> Int {
        switch kind {
        case .plain, .group, .filing, .program: 1
        case .guarded: 2
        case .range, .chunk, .directory, .sorted: 6
        }
    }

    func setHeader(_ kind: BlockKind, sizeClass: Int, keyLength: Int, hasNext: Bool) {
        base[0] =
            UInt32(sizeClass) | kind.rawValue << 7 | (hasNext ? Self.nextFlag : 0)
            | UInt32(keyLength) << 16
    }
}

/// The parts of the word by which a posting refers to subscriptions.
enum PostingWord {
    /// The mask of a subscription's number within its core.
    static let idMask: UInt32 = 0x0FFF_FFFF
    /// The shift of the three bits for the kinds of change on which the subscription fires.
    static let firesShift: UInt32 = 28
    /// The flag of a word that refers to a group; the other bits are the offset of the group's
    /// block.
    static let group: UInt32 = 0x8000_0000
}

/// One interval with its subscription: six words.
struct RangePosting {
    var word: UInt32
    var program: UInt32
    var low: Int64
    var high: Int64

    @inline(__always)
    init(_ words: UnsafePointer<UInt32>) {
        word = words[0]
        program = words[1]
        low = Self.load(words + 2)
        high = Self.load(words + 4)
    }

    init(word: UInt32, program: UInt32, low: Int64, high: Int64) {
        self.word = word
        self.program = program
        self.low = low
        self.high = high
    }

    @inline(__always)
    func store(_ words: UnsafeMutablePointer<UInt32>) {
        words[0] = word
        words[1] = program
        Self.store(low, words + 2)
        Self.store(high, words + 4)
    }

    @inline(__always)
    static func load(_ words: UnsafePointer<UInt32>) -> Int64 {
        UnsafeRawPointer(words).loadUnaligned(as: Int64.self)
    }

    @inline(__always)
    static func store(_ value: Int64, _ words: UnsafeMutablePointer<UInt32>) {
        UnsafeMutableRawPointer(words).storeBytes(of: value, as: Int64.self)
    }
}

/// The path, value class and direction of a block's intervals, and the cells in which they begin,
/// packed into a word.
struct IntervalKind: Equatable {
    var path: Int
    var valueClass: ValueClass
    /// Whether the intervals are bounded above only.
    ///
    /// Order and bounds are mirrored then, so that the existing bound comes first.
    var isMirrored: Bool
    /// The size of the cells, if the key is a cell.
    var cells: CellLevel?

    init(path: Int, valueClass: ValueClass, isMirrored: Bool) {
        self.path = path
        self.valueClass = valueClass
        self.isMirrored = isMirrored
    }

    @inline(__always)
    init(_ word: UInt32) {
        path = Int(word & 0xFFFF)
        valueClass = ValueClass(rawValue: UInt8(truncatingIfNeeded: word >> 16 & 15)) ?? .null
        isMirrored = word & 1 << 20 != 0
        if word & 1 << 21 != 0 { cells = CellLevel(code: UInt8(word >> 24)) }
    }

    var word: UInt32 {
        UInt32(path) | UInt32(valueClass.rawValue) << 16 | (isMirrored ? 1 << 20 : 0)
            | (cells.map { 1 << 21 | UInt32($0.code) << 24 } ?? 0)
    }
}
