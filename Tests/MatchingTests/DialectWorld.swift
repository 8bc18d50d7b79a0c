import PredicateLanguage
import RelayModel
import Testing

/// A dialect in which subscribers write conditions.
enum WrittenDialect: String, CaseIterable, CustomTestStringConvertible {
    case nspredicate
    case ckquery
    case rql
    case `where`
    case filterBy
    case firebase

    var testDescription: String { rawValue }

    /// Whether the order in which the elements of a collection are evaluated does not matter,
    /// because none of them can be an error.
    var takesAny: Bool { self == .rql || self == .where || self == .firebase }
}

/// Random conditions of one dialect, and values that its rules treat otherwise than NSPredicate's.
struct DialectWorld {
    var world: RandomWorld
    let dialect: WrittenDialect

    init(_ dialect: WrittenDialect, seed: UInt64) {
        self.dialect = dialect
        world = RandomWorld(seed: seed)
    }

    // MARK: Values

    static let scalars: [FieldValue] = [
        .null, .bool(true), .bool(false), .integer(0), .integer(1), .integer(2), .double(1),
        .double(0.5), .double(-0.0), .double(.nan), .double(.infinity), .integer(1 << 53 + 1),
        .double(9_007_199_254_740_992), .integer(.max), .integer(-3), .string(""), .string("a"),
        .string("A"), .string("ab"), .string("abc"), .string("é"), .string("e\u{301}"),
        .string("É"), .string("K\u{17F}"), .string("\u{212A}s"), .string("xabcx"),
        .string("a*b"), .string("\u{E9}a"), .string(String(repeating: "x", count: 130)),
        .bytes([]), .bytes([0x61]), .bytes([0x41, 0x62]), .bytes([0xE9]), .bytes([0xC3, 0xA9]),
        .bytes([0x61, 0x62, 0x63]), .string("2023-11-14T22:13:20Z"), .string("2023-11-14"),
        .string("2023-11-14T22:13:20.5+01:00"), .timestamp(Timestamp(seconds: 1_700_000_000)),
        .timestamp(Timestamp(seconds: 0)), .timestamp(Timestamp(seconds: -9_000_000_000_000)),
        .timestamp(Timestamp(seconds: 1_699_996_400, nanoseconds: 500_000_000)),
        .uuid(UUIDBytes(high: 1, low: 2)), .objectID([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        .string("00000000-0000-0001-0000-000000000002"), .string("0102030405060708090a0b0c"),
        Location(latitude: 1, longitude: 2).map(FieldValue.location) ?? .null,
        reference("a"), reference("1"), reference("r"),
    ]

    private static func reference(_ name: String) -> FieldValue {
        RecordName(rawValue: name).map { .reference(RecordReference(RecordID(recordName: $0))) }
            ?? .null
    }

    mutating func scalar() -> FieldValue { world.generator.pick(Self.scalars) }

    mutating func value(depth: Int = 2) -> FieldValue {
        guard depth > 0, world.generator.holds(oneIn: 2) else { return scalar() }
        let count = world.generator.below(4)
        switch world.generator.below(6) {
        case 0, 1: return .list((0..<count).map { _ in scalar() })
        case 2: return .list((0..<count).map { _ in value(depth: depth - 1) })
        case 3 where world.generator.holds(oneIn: 3):
            // In the order of their values these are coordinates.
            let price = Int64(world.generator.below(60))
            return .set([.integer(price), .integer(price + 20)])
        case 3: return .set([value(depth: depth - 1)])
        case 4:
            return .map([
                world.generator.pick(["recordName", "_id", "a"]): scalar(),
                "b": value(depth: depth - 1),
            ])
        default:
            let price = Int64(world.generator.below(60))
            return .list([.integer(price), .double(Double(price) + 30), scalar()])
        }
    }

    mutating func fields() -> RecordFields {
        var fields: RecordFields = [:]
        for name in RandomWorld.fields where !world.generator.holds(oneIn: 6) {
            fields[name] = value()
        }
        return fields
    }

    // MARK: Conditions

    /// Draws a condition; repeats a draw that cannot be parsed.
    mutating func condition() -> RecordPredicate {
        for _ in 0..<100 {
            if let found = drawn() { return found }
        }
        return .everyRecord
    }

    private mutating func drawn() -> RecordPredicate? {
        switch dialect {
        case .rql: return try? RecordPredicate(rql: query(depth: 2), arguments: arguments())
        case .where: return try? RecordPredicate(where: conditions(depth: 2))
        case .nspredicate: return RecordPredicate(world.node(depth: 3))
        case .filterBy: return world.filters()
        case .firebase: return world.window()
        case .ckquery:
            let predicate = RecordPredicate(world.node(depth: 2))
            return (try? predicate.checkCloudKit()) == nil ? nil : predicate
        }
    }

    private mutating func arguments() -> [FieldValue] {
        (0..<4).map { number in
            number < 3 ? scalar() : .list((0..<world.generator.below(5)).map { _ in scalar() })
        }
    }

    private mutating func query(depth: Int) -> String {
        if depth > 0, world.generator.holds(oneIn: 2) {
            let (one, other) = (query(depth: depth - 1), query(depth: depth - 1))
            switch world.generator.below(5) {
            case 0, 1: return "(\(one)) AND (\(other))"
            case 2, 3: return "(\(one)) OR (\(other))"
            default: return "NOT (\(one))"
            }
        }
        var query = world.generator.pick(Self.queries)
        for name in ["#f", "#g"] {
            query = query.replacing(name, with: world.generator.pick(RandomWorld.fields))
        }
        return query.replacing("#o", with: world.generator.pick(["<", "<=", ">", ">="]))
    }

    private static let queries = [
        "#f == $0", "#f == $1", "#f != $0", "#f ==[c] $0", "#f !=[c] $0", "$0 == #f", "#f == nil",
        "#f != nil", "#f #o $0", "$0 #o #f", "#f > 1 AND #f < 40", "#f >= $0 AND #f < $1",
        "#f > 20 AND #f <= 50 AND #g == $0", "#f > 5 AND #f < 3", "#f #o 10", "#f #o 'ab'",
        "#f BETWEEN {0, 2}", "#f BETWEEN {$0, $1}", "#f IN $3", "#f IN {1, 'a', nil}",
        "#f IN {'a', 'ab'}", "#f IN[c] {'A', 'É'}", "$0 IN #f", "'a' IN #f", "'A' IN[c] #f",
        "#f IN {1, 31, $0}", "#f BEGINSWITH 'a'", "#f BEGINSWITH[c] 'A'", "#f BEGINSWITH ''",
        "#f BEGINSWITH 'é'", "#f ENDSWITH 'c'", "#f ENDSWITH[c] 'BC'", "#f CONTAINS 'bc'",
        "#f CONTAINS[c] 'ABC'", "#f CONTAINS ''", "#f CONTAINS $0", "#f LIKE 'a*'",
        "#f LIKE[c] '*B?'", "#f LIKE '*abc*'", "#f LIKE 'a\\\\*b'", "#f LIKE ''", "#f LIKE $0",
        "ANY #f == $0", "ANY #f == 'a'", "ANY #f IN {1, 'a'}", "ANY #f IN[c] {'A', 'É'}",
        "ANY #f #o 1", "ALL #f == $0", "NONE #f == $0", "ALL #f != $0", "#f.a == $0",
        "#f.b == $0", "#f.b.b == $0", "#f.b #o 10", "#f.b BEGINSWITH 'a'", "ANY #f.b == $0",
        "#f.b IN {1, 'a'}", "#f == obj(\"Art\", \"a\")", "#f IN {obj(\"Art\", \"a\")}",
        "ANY #f == obj(\"Art\", \"r\")", "#f == TRUE", "#f == FALSE", "#f == 1", "#f == 1.0",
        "#f.@count > 1", "#f.@count == 1", "#f == #g", "#f + 1 > 2", "#f[0] == $0",
        "#f[1] #o $0", "#f[0] == nil", "#f['b'] == $0", "#f['b'] != $0", "#f['b'] == nil",
        "NOT #f['b'] == $0", "#f['b'] ==[c] 'É'", "#f['b'] #o 10", "#f['b'] IN {1, 'a'}",
        "ANY #f['b'] == $0", "#f['b'].b == $0", "#f.b['a'] == $0", "#f['_id'] BEGINSWITH 'a'",
        "#f[FIRST] == $0", "#f[FIRST] != nil", "#f[LAST] IN $3", "#f[LAST] #o $0",
        "#f GEOWITHIN geocircle([2, 1], 0.1)", "#f GEOWITHIN geobox([0, 30], [20, 50])",
        "ANY #f GEOWITHIN geobox([0, 0], [40, 80])", "NOT #f GEOWITHIN geocircle([20, 50], 0.3)",
        "#f.b GEOWITHIN geobox([-10, -10], [30, 60])", "ALL #f GEOWITHIN geobox([0, 0], [9, 60])",
        "#f GEOWITHIN geobox([170, 0], [10, 60])", "#f[0] GEOWITHIN geocircle([2, 1], 2)",
        "#f GEOWITHIN geopolygon({[0, 30], [50, 30], [50, 80], [0, 30]})",
        "#f[FIRST].b == $0", "#f['b'] == obj(\"Art\", \"a\")",
        "#f TEXT 'abc'", "#f == $0 AND #g == $1", "#f == $0 OR #g == $1", "NOT #f == $0",
        "NOT #f != $0", "NOT #f IN $3", "NOT (#f > 1 OR #g == $0)", "#f != $0 OR #f != $1",
        "#f == 'a' OR #f == 'b' OR #f == 'ab' OR #f == 'x' OR #g == 'a' OR #g == 'b' "
            + "OR #g == 'c' OR #g == 'd' OR #g == $0 OR #f == $0",
    ]

    private mutating func conditions(depth: Int) -> JSONValue {
        if depth > 0, world.generator.holds(oneIn: 2) {
            let members = (0..<1 + world.generator.below(3)).map { _ in
                conditions(depth: depth - 1)
            }
            return [world.generator.pick(["$and", "$or"]): .array(members)]
        }
        let field = world.generator.pick(RandomWorld.fields)
        if world.generator.holds(oneIn: 4) {
            let low = Int64(world.generator.below(60))
            return [field: ["$gte": .integer(low), "$lt": .integer(low + 10)]]
        }
        let operation = world.generator.pick(["$eq", "$eq", "$ne", "$lt", "$lte", "$gt", "$gte"])
        return [field: [operation: world.generator.pick(Self.constants)]]
    }

    private static let constants: [JSONValue] = [
        1, 0, 2, .number(0.5), .number(10.25), -3, "a", "A", "ab", "", "é", "e\u{301}", true,
        false, "r", "2023-11-14T22:13:20Z", "2023-11-14T22:13:20.500+00:00", "2023-11-14",
        "1970-01-01T00:00:00Z", .integer(1 << 53 + 1),
    ]
}
