import PredicateLanguage

/// The origin of a path's values.
enum PathOrigin: Hashable, Codable {
    /// A field of the record.
    case field
    /// A member inside a field, by the names that lead to it.
    case members([String])
    /// The values of another path, with their texts folded.
    case folded(Int, TextOptions)
    /// The whole record.
    case record
    /// The values of another path in the view of another dialect's rules.
    case viewed(Int, ValueView)
    /// A member inside a field as those rules find and view it, by the names that lead to it.
    case viewedMembers([String], ValueView)
    /// A value inside a field as Realm's rules find and view it, by the steps that lead to it, one
    /// of which is an index.
    case viewedSteps([RealmStep], ValueView)

    /// Whether the values are bags of scalars.
    var isView: Bool {
        switch self {
        case .viewed, .viewedMembers, .viewedSteps: true
        case .field, .members, .folded, .record: false
        }
    }
}

/// The keys of one path by which changes of a record type are looked up.
///
/// It has only those that saved predicates need.
struct PathUse: Codable {
    /// The name of the record's field; empty for derived paths.
    var field: String
    /// The origin of the values.
    var origin = PathOrigin.field
    /// For each value class, the number of the dimension for equality plus 1; 0 if unused.
    var equal = ClassNumbers()
    /// The same for elements of collections.
    var element = ClassNumbers()
    /// The same for values in views, alone or in a list.
    var any = ClassNumbers()
    /// The same for cells, for numbers and dates only.
    var cell = ClassNumbers()
    /// The same for open intervals.
    var open = ClassNumbers()
    /// The same for intervals that several numbers or dates of a list may satisfy together.
    var hull = ClassNumbers()
    /// The number of the dimension for whole lists, plus 1.
    var sequence: UInt32 = 0
    /// The number of the dimension for texts of any content, plus 1.
    var text: UInt32 = 0
    /// The number of the dimension for prefixes, plus 1.
    var prefix: UInt32 = 0
    /// The number of the dimension for three bytes anywhere in a text, plus 1, and the bytes in
    /// use.
    var gram: UInt32 = 0
    var grams = TextFilter()
    /// The number of the dimension for words, plus 1, and the words in use.
    var token: UInt32 = 0
    var tokens = TextFilter()
    /// The number of the dimension for cells of locations, plus 1, and the levels in use, as bits.
    var place: UInt32 = 0
    var placeLevels: UInt64 = 0
    /// The prefix lengths in use, as bits.
    var prefixLengths: UInt64 = 0
    /// The sizes of cells in use.
    var levels = CellLevels()

    /// Whether the path is a field of the record, not derived from anything.
    var isPlain: Bool {
        if case .field = origin { true } else { false }
    }
}

/// A number for each value class that can be a key.
struct ClassNumbers: Codable {
    private var numbers: InlineArray<10, UInt32> = .init(repeating: 0)

    @inline(__always)
    subscript(kind: ValueClass) -> UInt32 {
        get { kind.isScalar ? numbers[Int(kind.rawValue)] : 0 }
        set { numbers[Int(kind.rawValue)] = newValue }
    }

    init() {}

    init(from decoder: any Decoder) throws {
        for (index, number) in try [UInt32](from: decoder).enumerated()
        where index < numbers.count {
            numbers[index] = number
        }
    }

    func encode(to encoder: any Encoder) throws {
        try numbers.indices.map { numbers[$0] }.encode(to: encoder)
    }
}

extension PathUse {
    /// Returns the number of a dimension plus 1, or 0 if it is not in use.
    func number(of dimension: KeyDimension) -> UInt32 {
        switch dimension.kind {
        case .equal: equal[dimension.valueClass]
        case .element: element[dimension.valueClass]
        case .cell: cell[dimension.valueClass]
        case .open: open[dimension.valueClass]
        case .text: text
        case .gram: gram
        case .token: token
        case .place: place
        case .prefix: prefix
        case .any: any[dimension.valueClass]
        case .hull: hull[dimension.valueClass]
        case .sequence: sequence
        case .every: 0
        }
    }

    mutating func enter(_ dimension: KeyDimension, number: UInt32) {
        switch dimension.kind {
        case .equal: equal[dimension.valueClass] = number + 1
        case .element: element[dimension.valueClass] = number + 1
        case .cell: cell[dimension.valueClass] = number + 1
        case .open: open[dimension.valueClass] = number + 1
        case .text: text = number + 1
        case .gram: gram = number + 1
        case .token: token = number + 1
        case .place: place = number + 1
        case .prefix: prefix = number + 1
        case .any: any[dimension.valueClass] = number + 1
        case .hull: hull[dimension.valueClass] = number + 1
        case .sequence: sequence = number + 1
        case .every: break
        }
    }
}

extension UInt64 {
    /// Sets bits, and returns whether any of them is new.
    mutating func insert(_ bits: UInt64) -> Bool {
        defer { self |= bits }
        return self & bits != bits
    }
}

/// A filter of the short texts that may be keys of a path, with one bit for each text, so that
/// texts in a change that no predicate looks for are skipped quickly.
struct TextFilter: Codable {
    private var words: [UInt64] = []

    private static let bits: UInt64 = 1 << 14

    /// Adds the text with this hash, and returns whether that changes the filter.
    mutating func insert(_ hash: UInt64) -> Bool {
        if words.isEmpty { words = Array(repeating: 0, count: Int(Self.bits / 64)) }
        let (word, bit) = Self.place(hash)
        return words[word].insert(bit)
    }

    /// Returns whether the text with this hash may be in use.
    @inline(__always)
    func contains(_ hash: UInt64) -> Bool {
        if words.isEmpty { return false }
        let (word, bit) = Self.place(hash)
        return words[word] & bit != 0
    }

    @inline(__always)
    private static func place(_ hash: UInt64) -> (Int, UInt64) {
        let mixed = hash &* 0x9E37_79B9_7F4A_7C15
        return (Int(mixed >> 56), 1 << (mixed >> 50 & 63))
    }
}

extension TextOptions: Codable {}
