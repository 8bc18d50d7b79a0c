import PredicateLanguage
import RegularExpressions
import RelayModel
import RelayTestKit
import Testing

@Suite("Firebase's order and Minapp's conditions")
struct OrderAndConditionTests {
    /// One value of each class, ascending.
    static let ascending: [FieldValue] = [
        .null, .bool(false), .bool(true), .double(-.infinity), .integer(.min), .integer(-1),
        .double(-0.5), .integer(0), .double(0.5), .integer(.max), .double(0x1p63), .string(""),
        .string("A"), .string("a"), .string("😀"), .string("\u{FFFF}"), .map(["a": .integer(1)]),
    ]

    @Test func `the order of values is total`() {
        let values = Self.ascending.map(FirebaseValue.init)
        for (i, one) in values.enumerated() {
            for (j, other) in values.enumerated() {
                #expect((one < other) == (i < j), "\(one.value) < \(other.value)")
                #expect((one == other) == (i == j))
            }
        }
        #expect(FirebaseValue(.map([:])) == FirebaseValue(.map(["a": .null])))
    }

    @Test func `keys that read as integers come first, by value`() {
        let keys = [
            "-2147483648", "-5", "0", "3", "03", "003", "10", "2147483647", "-", "-2147483649",
            "2147483648", "a", "a1",
        ]
        #expect(keys.shuffled().map(FirebaseKey.init).sorted().map(\.text) == keys)
    }

    @Test func `a path is divided at each slash, also before a combining mark`() throws {
        let query = try FirebaseQuery().ordered(byChild: "a/\u{301}b")
        #expect(query.ordering == .child(["a", "\u{301}b"]))
    }

    @Test func `a predicate in Firebase's order is the window without its limit`() throws {
        let children = Self.ascending.enumerated().map {
            FirebaseChild(key: "k\($0)", value: .map(["v": $1]), priority: .null)
        }
        for bound in Self.ascending.dropLast() {
            for isIncluded in [true, false] {
                let query = try FirebaseQuery().ordered(byChild: "v")
                    .starting(at: bound, isIncluded: isIncluded)
                let keys = query.window(of: children).map(\.key)
                let prepared = try PreparedPredicate(query.predicate)
                let held = children.filter { prepared.evaluate(on: $0.fields) == .true }
                #expect(held.map(\.key) == keys)
                let again = try RecordPredicate(format: query.predicate.canonicalText)
                #expect(again == query.predicate)
            }
        }
    }

    @Test func `a position is between the bounds where the predicate says so`() throws {
        let keys = ["1", "01", "10", "k", "K", "-3"]
        let values = Self.ascending
        var generator = SeededGenerator(seed: 7)
        for round in 0..<2_000 {
            var query = FirebaseQuery(kinds: round % 2 == 0 ? .ordered : .sameAsBound)
            let isByKey = round % 5 == 0
            query = try isByKey ? query.ordered(by: .key) : query.ordered(byChild: "v")
            for isStart in [true, false] where Bool.random(using: &generator) {
                let value =
                    isByKey
                    ? .string(keys.randomElement(using: &generator) ?? "")
                    : values.dropLast().randomElement(using: &generator) ?? .null
                let key =
                    isByKey || Bool.random(using: &generator)
                    ? nil : keys.randomElement(using: &generator)
                let isIncluded = Bool.random(using: &generator)
                let bounded =
                    try? isStart
                    ? query.starting(at: value, key: key, isIncluded: isIncluded)
                    : query.ending(at: value, key: key, isIncluded: isIncluded)
                // Wilddog's rules refuse two bounds of different kinds.
                query = bounded ?? query
            }
            let prepared = try PreparedPredicate(query.predicate)
            for key in keys {
                for value in values {
                    let child = FirebaseChild(key: key, value: .map(["v": value]))
                    #expect(
                        query.admits(isByKey ? .null : value, key: key)
                            == (prepared.evaluate(on: child.fields) == .true),
                        "\(query) \(key) \(value)")
                }
            }
        }
    }

    @Test func `Wilddog's two bounds must be of one kind`() throws {
        let query = try FirebaseQuery(kinds: .sameAsBound).ordered(by: .value)
        #expect(throws: PredicateError.self) {
            try query.starting(at: .integer(1)).ending(at: .string("a"))
        }
        _ = try query.starting(at: .bool(false)).ending(at: .bool(true))
        _ = try FirebaseQuery().ordered(by: .value).starting(at: .integer(1))
            .ending(at: .string("a"))
    }

    @Test func `Wilddog's ranges contain only values of the bound's kind`() throws {
        let query = try FirebaseQuery(kinds: .sameAsBound).ordered(by: .value)
        func keys(_ query: FirebaseQuery) -> [FieldValue] {
            let children = Self.ascending.enumerated().map {
                FirebaseChild(key: "\($0)", value: $1)
            }
            return query.window(of: children).map(\.value)
        }
        #expect(keys(try query.ending(at: .integer(-1))) == Array(Self.ascending[3...5]))
        #expect(keys(try query.starting(at: .string("a"))) == Array(Self.ascending[13...15]))
        #expect(keys(try query.starting(at: .bool(false))) == Array(Self.ascending[1...2]))
    }

    // MARK: Minapp

    static let record: RecordFields = [
        "price": .integer(10), "name": .string("hua"), "sold": .bool(true), "none": .null,
        "made": .string("2018-09-01T18:31:02.631000+08:00"), "tags": .list([.string("a")]),
        "at": .timestamp(Timestamp(seconds: 1_535_797_862, nanoseconds: 631_000_000)),
    ]

    @Test(arguments: [
        (#"{"price": {"$eq": 10.0}}"#, true), (#"{"price": {"$lt": 10}}"#, false),
        (#"{"price": {"$eq": true}}"#, false), (#"{"sold": {"$eq": true}}"#, true),
        (#"{"sold": {"$eq": 1}}"#, false), (#"{"name": {"$ne": "x"}}"#, true),
        (#"{"absent": {"$ne": "x"}}"#, true), (#"{"absent": {"$lte": 3}}"#, false),
        (#"{"made": {"$eq": "2018-09-01T10:31:02.631Z"}}"#, true),
        (#"{"at": {"$lt": "2018-09-01T10:31:02.632Z"}}"#, true),
        (#"{"at": {"$lt": "2018-09-01T10:31:02.631Z"}}"#, false),
        (#"{"tags": {"$eq": "a"}}"#, true), (#"{"tags": {"$ne": "a"}}"#, false),
        (#"{"$or": [{"price": {"$gt": 99}}, {"$and": [{"name": {"$eq": "hua"}}]}]}"#, true),
        (#"{"price": {"$gt": 5, "$lt": 9}}"#, false), ("{}", true),
    ]) func `a condition has the expected answer`(json: String, holds: Bool) throws {
        let predicate = try RecordPredicate(where: JSONValue(parsing: Array(json.utf8)))
        #expect(predicate.evaluate(on: Self.record) == (holds ? .true : .false))
        #expect(try RecordPredicate(format: predicate.canonicalText) == predicate)
    }

    static let noOperators =
        "invalid options: a field needs an object of operators, found an integer"

    @Test(arguments: [
        ("[]", "", "invalid options: a condition must be an object, found an array"),
        (#"{"a": 1}"#, "a", Self.noOperators),
        (
            #"{"a": {"$eq": null}}"#, "a.$eq",
            "invalid options: null does not fit a compare condition"
        ),
        (
            #"{"a": {"$lt": "x"}}"#, "a.$lt",
            "invalid options: a text can be compared only by $eq and $ne, found $lt"
        ),
        (#"{"$not": []}"#, "$not", "invalid options: $not is neither a field nor $and or $or"),
        (#"{"$or": []}"#, "$or", "invalid options: $and and $or take a list of conditions"),
        (
            #"{"$or": [{"a": {"$in": [1]}}]}"#, "$or[0].a.$in",
            "invalid options: $in cannot be subscribed to; allowed are $eq, $ne, $lt, $lte, $gt, $gte"
        ),
    ]) func `a malformed condition is refused with its path`(
        json: String, path: String, reason: String
    ) throws {
        let value = try JSONValue(parsing: Array(json.utf8))
        var error = PredicateError(
            .check, reason,
            expected: "{field: {$eq, $ne, $lt, $lte, $gt or $gte: value}}, $and or $or",
            path: path)
        if path == "a" { error.hint = #"{"a": {"$eq": …}}"# }
        #expect(throws: error) { try RecordPredicate(where: value) }
    }
}
