import PredicateLanguage

/// Where the values of a path come from.
enum PathOrigin: Hashable, Codable {
    /// A field of the record.
    case field
    /// A member inside a field, by the names on the way.
    case members([String])
    /// Another path's values with their texts folded.
    case folded(Int, TextOptions)
    /// The whole record.
    case record
    /// Another path's values as another dialect's rules see them.
    case viewed(Int, ValueView)
    /// A member inside a field as these rules find and see it, by the names on the way.
    case viewedMembers([String], ValueView)
    /// A value inside a field as Realm's rules find and see it, by the steps on the way, one of
    /// which is an index.
    case viewedSteps([RealmStep], ValueView)

    /// Whether values are bags of scalars.
    var isView: Bool {
        switch self {
        case .viewed, .viewedMembers, .viewedSteps: true
        case .field, .members, .folded, .record: false
        }
    }
}

/// The keys that changes of one record type are looked up by: what saved predicates ask for, and
/// nothing else.
struct PathUse: Codable {
    /// The field of the record; empty for derived paths.
    var field: String
    /// Where the values come from.
    var origin = PathOrigin.field
    /// For each value class, the number of the dimension of equality plus 1, 0 where unused.
    var equal = ClassNumbers()
    /// The same for elements of collections.
    var element = ClassNumbers()
    /// The same for values in views, alone or in a list.
    var any = ClassNumbers()
    /// The same for cells; numbers and dates only.
    var cell = ClassNumbers()
    /// The same for open intervals.
    var open = ClassNumbers()
    /// The same for intervals that lists of several numbers or dates may satisfy.
    var hull = ClassNumbers()
    /// The dimension of whole lists, plus 1.
    var sequence: UInt32 = 0
    /// The dimension of texts of any content, plus 1.
    var text: UInt32 = 0
    /// The dimension of prefixes, plus 1.
    var prefix: UInt32 = 0
    /// The dimension of three bytes anywhere in texts, plus 1, and which are in use.
    var gram: UInt32 = 0
    var grams = TextFilter()
    /// The dimension of words, plus 1, and which are in use.
    var token: UInt32 = 0
    var tokens = TextFilter()
    /// The dimension of the cells of places, plus 1, and their levels in use, as bits.
    var place: UInt32 = 0
    var placeLevels: UInt64 = 0
    /// The prefix lengths in use, as bits.
    var prefixLengths: UInt64 = 0
    /// The sizes of cells in use.
    var levels = CellLevels()

    /// Whether it is a field as it is.
    var isPlain: Bool {
        if case .field = origin { true } else { false }
    }
}

/// A number for each class that can be a key.
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
    /// The number of a dimension plus 1, or 0.
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
    /// Sets bits; says whether one of them is new.
    mutating func insert(_ bits: UInt64) -> Bool {
        defer { self |= bits }
        return self & bits != bits
    }
}

/// Which short texts may be keys of a path: a few bits for each, so that a change's text is passed
/// over quickly where nobody asks for it.
struct TextFilter: Codable {
    private var words: [UInt64] = []

    private static let bits: UInt64 = 1 << 14

    /// Takes the text with this hash into use; says whether that changes anything.
    mutating func insert(_ hash: UInt64) -> Bool {
        if words.isEmpty { words = Array(repeating: 0, count: Int(Self.bits / 64)) }
        let (word, bit) = Self.place(hash)
        return words[word].insert(bit)
    }

    /// Whether the text with this hash may be in use.
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
