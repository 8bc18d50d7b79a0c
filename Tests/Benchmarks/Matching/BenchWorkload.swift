import Matching
import PredicateLanguage
import RelayModel

/// The shapes of predicates of `bench match`.
enum WorkloadShape: String, CaseIterable {
    /// Equality of high cardinality.
    case a
    /// Equality and a range.
    case b
    /// IN of five.
    case c
    /// A narrow range.
    case d
    /// OR of two equalities.
    case e
    /// BEGINSWITH.
    case f
    /// A realistic mixture.
    case g

    /// The goals at a million subscriptions: changes per second, and bytes per subscription.
    var goal: (changesPerSecond: Double, bytes: Double) {
        switch self {
        case .a: (5e6, 40)
        case .b: (2e6, 64)
        case .c: (3e6, 128)
        case .d: (0.6e6, 96)
        case .e: (2e6, 112)
        case .f: (2e6, 64)
        case .g: (0.6e6, 72)
        }
    }
}

/// Subscriptions and changes of one shape, the same for the same seed.
struct BenchWorkload {
    typealias Node = RecordPredicate.Node

    let shape: WorkloadShape
    let count: Int
    /// The dialect in which conditions are written.
    var writer = DialectWriter(dialect: .nspredicate)
    /// A second dialect that must be able to express every condition too, so that two runs in two
    /// dialects have the same conditions.
    var spares: DialectWriter?
    private var generator: SplitMix
    private let artists: Int
    private let owners: Int
    private let tags: Int
    private var words: [String] = []
    private let recordType: RecordType
    private let recordName: RecordName
    private let owner: UserID

    /// The number of prices, from 0 to a million in steps of a hundredth.
    private static let prices = 100_000_000

    init?(shape: WorkloadShape, count: Int, seed: UInt64) {
        guard let type = RecordType(rawValue: "Art"), let owner = UserID(rawValue: "owner"),
            let name = RecordName(rawValue: "record")
        else { return nil }
        (recordType, self.owner, recordName) = (type, owner, name)
        self.shape = shape
        self.count = count
        generator = SplitMix(state: seed)
        artists =
            switch shape {
            case .b: max(1, count / 10)
            case .c: max(5, count)
            case .e: max(1, count / 2)
            default: max(5, count / 4)
            }
        owners = max(1, shape == .e ? count / 2 : count / 4)
        tags = max(100, count / 20)
        let prefixes = shape == .f ? count : max(8, count / 33)
        words = (0..<max(4, prefixes / 2)).map { _ in word(6 + generator.below(4)) }
    }

    // MARK: Subscriptions

    mutating func subscription(_ serial: Int) -> IndexedSubscription {
        // If the dialect cannot express a part of the mixture, the condition asks for an artist.
        let node = node()
        return IndexedSubscription(
            serial: UInt64(serial), database: .public, owner: owner, recordType: recordType,
            predicate: predicate(node) ?? writer.predicate(artist()))
    }

    private func predicate(_ node: Node) -> RecordPredicate? {
        if let spares, spares.predicate(node) == nil { return nil }
        return writer.predicate(node)
    }

    private mutating func node() -> Node {
        switch shape {
        case .a: artist()
        case .b: .and([artist()] + range(0.1, 0.5))
        case .c: five()
        case .d: .and(range(0.00005, 0.00015))
        case .e: .or([artist(), ownedBy()])
        case .f: prefix()
        case .g: mixed()
        }
    }

    private mutating func mixed() -> Node {
        switch generator.below(100) {
        case 0..<52: return artist()
        case 52..<62: return ownedBy()
        case 62..<74: return .and([artist()] + range(0.1, 0.5))
        case 74..<82: return five()
        case 82..<86: return .and(range(0.00005, 0.00015))
        case 86..<90: return .or([artist(), ownedBy()])
        case 90..<92:
            let price = compare("price", .less, .double(price(generator.unit())))
            let score = compare("score", .greater, .integer(Int64(generator.below(1_000_000))))
            return .or([.and([artist(), price]), .and([ownedBy(), score])])
        case 92..<95: return prefix()
        case 95..<97:
            return compare("tags", .contains, .string("t\(pick(tags))"))
        case 97..<99:
            let price = compare(
                "price", .greater, .double(price(0.98 + 0.02 * generator.unit())))
            return .and([
                compare("genre", .equal, .string(genre())), price,
                compare("flag", .equal, .bool(true)),
            ])
        default:
            return .and([
                ownedBy(), compare("status", .notEqual, .string("s\(generator.below(5))")),
            ])
        }
    }

    private func compare(
        _ field: String, _ comparator: RecordPredicate.Comparator, _ value: FieldValue
    ) -> Node {
        .comparison(.init(.field(field), comparator, .constant(value)))
    }

    private mutating func artist() -> Node {
        compare("artist", .equal, .string(artistName()))
    }

    private mutating func ownedBy() -> Node {
        compare("owner", .equal, .string(ownerName()))
    }

    private mutating func five() -> Node {
        var names: [FieldValue] = []
        while names.count < 5 {
            let name = FieldValue.string(artistName())
            if !names.contains(name) { names.append(name) }
        }
        return compare("artist", .in, .list(names))
    }

    private mutating func range(_ narrow: Double, _ wide: Double) -> [Node] {
        let width = narrow + (wide - narrow) * generator.unit()
        let low = generator.unit() * (1 - width)
        return [
            compare("price", .greaterOrEqual, .double(price(low))),
            compare("price", .less, .double(price(low + width))),
        ]
    }

    private mutating func prefix() -> Node {
        let word = words[generator.below(words.count)]
        return compare("title", .beginsWith, .string(String(word.prefix(4 + generator.below(3)))))
    }

    // MARK: Changes

    mutating func change() -> RecordChange {
        var change = RecordChange(.update, of: recordType, RecordID(recordName: recordName))
        var tagged: Set<String> = []
        while tagged.count < 3 { tagged.insert("t\(pick(tags))") }
        change.after = RecordImage([
            "artist": .string(artistName()), "owner": .string(ownerName()),
            "genre": .string(genre()), "title": .string(title()),
            "price": .double(price(generator.unit())),
            "score": .integer(Int64(generator.below(1_000_000))),
            "date": .timestamp(
                Timestamp(seconds: 1_700_000_000 + Int64(generator.below(60_000_000)))),
            "flag": .bool(generator.below(2) == 0), "tags": .list(tagged.map(FieldValue.string)),
            "status": .string("s\(generator.below(5))"),
            "lat": .double(generator.unit() * 180 - 90),
            "lon": .double(generator.unit() * 360 - 180),
        ])
        return change
    }

    private mutating func title() -> String {
        guard shape == .f || shape == .g else { return word(12 + generator.below(9)) }
        return words[generator.below(words.count)] + " " + word(5 + generator.below(7))
    }

    // MARK: Values

    /// Draws a number, uniformly, or in the mixture skewed to low numbers.
    private mutating func pick(_ limit: Int) -> Int {
        let unit = generator.unit()
        return Int(Double(limit) * (shape == .g ? unit * unit : unit))
    }

    private mutating func artistName() -> String { "A" + Self.digits(pick(artists)) }
    private mutating func ownerName() -> String {
        "U" + Self.digits(pick(owners) + 1_000_000_000)
    }

    private static func digits(_ number: Int) -> String {
        let text = String(SplitMix.mix(UInt64(number)), radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }

    /// Draws one of fifty genres, the first most often (Zipf).
    private mutating func genre() -> String {
        var left = generator.unit() * 4.499_205_338_329_425
        for rank in 1...50 {
            left -= 1 / Double(rank)
            if left <= 0 { return "g\(rank - 1)" }
        }
        return "g49"
    }

    private mutating func word(_ length: Int) -> String {
        String(
            decoding: (0..<length).map { _ in UInt8(ascii: "a") + UInt8(generator.below(26)) },
            as: UTF8.self)
    }

    private func price(_ unit: Double) -> Double {
        Double(min(Int(unit * Double(Self.prices)), Self.prices - 1)) / 100
    }
}

/// A generator of random numbers that repeats its sequence for the same seed.
struct SplitMix {
    var state: UInt64

    static func mix(_ number: UInt64) -> UInt64 {
        var mixed = number &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mix(state)
    }

    mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }

    /// Returns a number from 0 up to, but not including, 1.
    mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }
}
