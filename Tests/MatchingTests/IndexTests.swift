import Matching
import PredicateLanguage
import RelayModel
import Testing

/// Named cases of what the index promises, besides agreement with the evaluator.
@Suite struct IndexTests: ArtworkSuite {
    private let index = SubscriptionIndex(seed: 11)

    @Test func `equal predicates share one posting`() throws {
        for serial in 0..<1000 as Range<UInt64> {
            index.insert(try subscription(serial, "artist == 'x' AND price < 10"))
        }
        let statistics = index.statistics
        #expect(statistics.rangePostings == 1)
        #expect(statistics.sharedPostings == 999)
        let found = index.matches(
            for: try change(["artist": .string("x"), "price": .integer(9)]))
        #expect(found == Array(0..<1000))
    }

    @Test func `a common equality is not the key where a rarer one exists`() throws {
        for serial in 0..<1000 as Range<UInt64> {
            index.insert(
                try subscription(serial, "country == 'x' AND id == %@", [.string("id\(serial)")]))
        }
        let before = index.statistics.candidates
        let found = index.matches(
            for: try change(["country": .string("x"), "id": .string("id7")]))
        #expect(found == [7])
        #expect(index.statistics.candidates - before < 5)
    }

    @Test func `the index learns frequencies from changes`() throws {
        index.insert(try subscription(0, "genre == 'pop-music' AND studio == 'north'"))
        for number in 0..<20_000 {
            let fields: RecordFields = [
                "genre": .string("pop-music"), "studio": .string("s\(number)"),
            ]
            _ = index.matches(for: try change(fields))
        }
        for serial in 1..<200 as Range<UInt64> {
            index.insert(try subscription(serial, "genre == 'pop-music' AND studio == 'north'"))
        }
        let cost = index.cost(of: try subscription(900, "genre == 'pop-music'"))
        #expect(cost.candidatesPerChange > 0.5)
    }

    /// The cost is shown to whoever saves a condition, also on records that they may not read.
    @Test func `the cost of a condition does not tell whether few records have a value`() throws {
        index.insert(try subscription(0, "pin == 'none'"))
        for number in 0..<250 {
            let pin = number % 20 == 0 ? "often" : number == 7 ? "4711" : "p\(number)"
            _ = index.matches(for: try change(["pin": .string(pin)]))
        }
        let often = index.cost(of: try subscription(900, "pin == 'often'"))
        let once = index.cost(of: try subscription(900, "pin == '4711'"))
        let never = index.cost(of: try subscription(900, "pin == '4712'"))
        #expect(once == never)
        #expect(often.candidatesPerChange > once.candidatesPerChange)
        // Names that hardly any change has are not expected, however many a condition lists.
        let names = (0..<200).map { "'friend\($0)'" }.joined(separator: ", ")
        let friends = index.cost(of: try subscription(901, "pin IN {\(names)}"))
        #expect(friends.candidatesPerChange < 0.25)
    }

    /// Nor where many conditions are verified under the value.
    @Test func `the cost of a crowded value does not tell whether few records have it`() throws {
        index.insert(try subscription(0, "pin == 'none'"))
        for number in 0..<110 {
            _ = index.matches(for: try change(["pin": .string("p\(number)")]))
        }
        for (place, pin) in ["4711", "4712"].enumerated() {
            for number in 0..<70 {
                let serial = UInt64(100 + place * 100 + number)
                index.insert(try subscription(serial, "pin == '\(pin)' AND NOT price > \(number)"))
            }
        }
        for number in 0..<140 {
            let pin = number == 7 ? "4711" : "p\(number)"
            _ = index.matches(for: try change(["pin": .string(pin)]))
        }
        let once = index.cost(of: try subscription(900, "pin == '4711' AND NOT price > 900"))
        let never = index.cost(of: try subscription(900, "pin == '4712' AND NOT price > 900"))
        #expect(once.crowd == 70)
        #expect(once == never)
    }

    @Test func `an error never fires, even under NOT, and is counted`() throws {
        index.insert(try subscription(1, "artist == 'x' AND NOT (price > 10)"))
        index.insert(try subscription(2, "artist == 'x' AND NOT (price == 10)"))
        let found = index.matches(
            for: try change(["artist": .string("x"), "price": .string("ten")]))
        #expect(found == [2])
        #expect(index.errors == [1: 1])
        index.remove(serial: 1)
        #expect(index.errors == [:])
    }

    @Test func `a field that a partial image lacks satisfies no comparison, negated or not`() throws
    {
        index.insert(try subscription(1, "price != 3"))
        index.insert(try subscription(2, "NOT (price == 3)"))
        index.insert(try subscription(3, "artist == 'x' OR price == 3"))
        index.insert(try subscription(4, "price == nil"))
        index.insert(try subscription(5, "artist == 'x'"))
        index.insert(try subscription(6, "NOT (price + 1 == 3)"))
        index.insert(try subscription(7, "artist LIKE 'x*'"))
        let fields: RecordFields = ["artist": .string("x")]
        #expect(index.matches(for: try change(fields, .partial)) == [3, 5, 7])
        #expect(index.matches(for: try change(fields)) == [1, 2, 3, 4, 5, 7])
    }

    @Test func `a change without an image fires only conditions that read no fields`() throws {
        index.insert(try subscription(1, nil))
        index.insert(try subscription(2, "price == nil"))
        var bare = try change([:])
        bare.after = nil
        #expect(index.matches(for: bare) == [1])
    }

    @Test func `serials may be far apart`() throws {
        for serial in [5, 1 << 28, 1 << 40, UInt64.max - 1] as [UInt64] {
            index.insert(try subscription(serial, "artist == 'x'"))
        }
        let found = index.matches(for: try change(["artist": .string("x")]))
        #expect(found == [5, 1 << 28, 1 << 40, UInt64.max - 1])
        #expect(index.remove(serial: 1 << 40))
        #expect(!index.remove(serial: 1 << 40))
    }

    @Test func `the cost of a predicate says whether it has a key`() throws {
        let keyed = index.insert(try subscription(1, "artist == 'someone'"))
        #expect(!keyed.isResidual)
        #expect(keyed.keys == 1)
        let residual = index.insert(try subscription(2, "artist LIKE '*x*'"))
        #expect(residual == MatchingCost(candidatesPerChange: 1, isResidual: true, keys: 1))
        let never = index.insert(try subscription(3, "price > 3 AND price < 2"))
        #expect(never == MatchingCost(candidatesPerChange: 0, isResidual: false, keys: 0))
        #expect(index.statistics.residuals == 1)
    }

    @Test func `a hot key with many intervals skips those that cannot match`() throws {
        for serial in 0..<5000 as Range<UInt64> {
            index.insert(
                try subscription(
                    serial, "genre == 'g' AND price > %@", [.integer(Int64(serial))]))
        }
        let found = index.matches(
            for: try change(["genre": .string("g"), "price": .double(2.5)]))
        #expect(found == [0, 1, 2])
        #expect(index.statistics.candidates < 100)
        for serial in 0..<5000 as Range<UInt64> { index.remove(serial: serial) }
        #expect(index.statistics.rangePostings == 0)
    }

    @Test func `a predicate on more fields than a record type numbers is still exact`() throws {
        for serial in 0..<1100 as Range<UInt64> {
            index.insert(try subscription(serial, "field\(serial) == 1"))
        }
        #expect(index.matches(for: try change(["field1090": .integer(1)])) == [1090])
    }
}
