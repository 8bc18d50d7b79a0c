import RegularExpressions
import RelayModel
import Testing

@testable import PredicateLanguage

/// An evaluation ends soon, whatever is saved and posted, and an ordinary condition has its
/// answer.
@Suite("An evaluation has a budget") struct BudgetTests {
    private static func list(_ count: Int) -> FieldValue {
        .list((0..<count).map { .integer(Int64($0)) })
    }

    private static func texts(_ count: Int) -> FieldValue {
        .list((0..<count).map { .string("tag \($0)") })
    }

    /// A record as large as allowed, with lists, maps, and a text.
    private static let heavy: RecordFields = [
        "a": list(20_000), "b": list(20_000), "tags": texts(10_000), "words": texts(10_000),
        "items": .list(
            (0..<5_000).map { number in
                .map([
                    "price": .integer(Int64(number)), "tags": list(4),
                    "name": .string("n\(number)"),
                ])
            }),
        "text": .string(String(repeating: "lorem ipsum ", count: 30_000)),
        "foreign": .string(String(repeating: "größer ", count: 20_000)),
        "title": .string("title"), "pattern": .string(String(repeating: "a?", count: 1_000)),
    ]

    private static let products = [
        "SUBQUERY(a, $x, SUBQUERY(b, $y, $x == $y + 1).@count > 0).@count > 30000",
        "SUBQUERY(a, $x, ANY b == $x).@count > 3",
        "ALL tags IN words", "ANY tags == words", "NONE words CONTAINS[c] foreign",
        "ANY tags IN[cd] words", "foreign IN[c] tags AND foreign IN[c] words",
        "SUBQUERY(items, $i, SUBQUERY(items, $j, $j.price > $i.price).@count > 9000).@count > 1",
        "SUBQUERY(items, $i, text CONTAINS $i.name).@count > 1",
        "SUBQUERY(items, $i, $i.name MATCHES pattern).@count > 1",
        "ANY tags LIKE text", "SUBQUERY(tags, $t, a UNION b == $t).@count > 1",
        "SUBQUERY(a, $x, b.@sum > $x).@count > 1",
        "SUBQUERY(tags, $t, uppercase(text) == $t).@count > 1",
        "SUBQUERY(tags, $t, text TOKENMATCHES $t).@count > 1",
        "SUBQUERY(tags, $t, CAST(items, 'NSString') == $t).@count > 1",
        "text MATCHES '(\\\\w\\\\w?){10}x'",
    ]

    @Test(arguments: products)
    func `a product of lists has no answer on a heavy record`(
        format: String
    ) throws {
        let predicate = try PreparedPredicate(RecordPredicate(format: format))
        var steps = 0
        #expect(predicate.weight.isMetered)
        #expect(predicate.evaluate(on: Self.heavy, steps: &steps) == .error(.budgetExceeded))
        #expect(steps == Limits.maximumEvaluationSteps)
        #expect(predicate.evaluate(on: Self.heavy) == .error(.budgetExceeded))
        #expect(
            predicate.trace(onValue: .map(Self.heavy)).outcome == .error(.budgetExceeded))
        let light: RecordFields = ["a": Self.list(3), "title": .string("x")]
        #expect(predicate.evaluate(on: light) != .error(.budgetExceeded))
    }

    @Test(arguments: [
        "ANY tags IN words.@distinctUnionOfObjects.self", "ALL tags ==[c] ANY words",
        "ANY a == ALL b", "ANY tags CONTAINS[c] ALL words", "NONE items.price IN a",
        "ANY tags LIKE[c] ANY words", "items.tags.@count > ALL items.tags.@count",
    ])
    func `a product of lists under Realm's rules has no answer on a heavy record`(
        query: String
    ) throws {
        guard let parsed = try? RecordPredicate(rql: query) else { return }
        let predicate = try PreparedPredicate(parsed)
        #expect(predicate.weight.isMetered)
        var steps = 0
        let outcome = predicate.evaluate(on: Self.heavy, steps: &steps)
        #expect(outcome == .error(.budgetExceeded), "\(steps) steps")
    }

    @Test(arguments: [
        "ANY tags == 'tag 9999'", "'tag 9999' IN tags", "tags CONTAINS 'tag 9999'",
        "text CONTAINS 'ipsum'", "text CONTAINS[cd] 'IPSUM'", "text LIKE '*ipsum*'",
        "text MATCHES '.*ipsum.*'", "foreign CONTAINS[cd] 'GROßER'", "text TOKENMATCHES 'ipsum'",
        "tags[SIZE] == 10000 AND a[SIZE] > 100", "items.@sum.price > 100 AND b.@max > 4",
        "SUBQUERY(items, $i, $i.price > 4990 AND $i.name != 'x').@count == 9",
        "SUBQUERY(items, $i, ANY $i.tags == 2 AND $i.price == 7).@count == 1",
        "title IN tags OR ANY items.price == 4000", "ALL tags BEGINSWITH 'tag'",
        "ANY tags IN {'tag 1', 'tag 2'}", "title IN {'title', 'other'}",
    ])
    func `an ordinary condition has its answer on a heavy record`(format: String) throws {
        let predicate = try PreparedPredicate(RecordPredicate(format: format))
        #expect(predicate.evaluate(on: Self.heavy) == .true, "\(format)")
    }

    @Test func `a long list of constants costs one look-up, however often it is used`() throws {
        let constants = (0..<10_000).map { "\($0 * 2)" }.joined(separator: ", ")
        let format = "SUBQUERY(a, $x, $x IN {\(constants)}).@count == 10000"
        let predicate = try PreparedPredicate(RecordPredicate(format: format))
        #expect(predicate.evaluate(on: Self.heavy) == .true)
    }

    @Test func `a variable that contains itself many times over ends`() throws {
        var parts = ["($a := {title, title}) != nil"]
        for _ in 0..<60 { parts.append("($a := {$a, $a}) != nil") }
        let deep = (0..<2_000).map { _ in "($a := {$a, 1}) != nil" }
        for text in [parts, [parts[0]] + deep] {
            let predicate = try PreparedPredicate(
                RecordPredicate(format: text.joined(separator: " AND ")))
            #expect(predicate.evaluate(on: Self.heavy) == .error(.budgetExceeded))
        }
    }

    @Test func `many passes over a long text share one budget`() throws {
        let one = "text CONTAINS[cd] 'q' OR foreign CONTAINS[cd] 'q'"
        let few = try PreparedPredicate(RecordPredicate(format: one))
        #expect(!few.weight.isMetered)
        let format = (0..<100).map { "foreign CONTAINS[cd] 'q\($0)'" }.joined(separator: " OR ")
        let many = try PreparedPredicate(RecordPredicate(format: format))
        #expect(many.weight.isMetered)
        #expect(many.evaluate(on: Self.heavy) == .error(.budgetExceeded))
    }

    @Test func `texts are composed and folded in time proportional to their length`() {
        let clock = ContinuousClock()
        let short = String(repeating: "é", count: 20_000)
        let long = String(repeating: "é", count: 320_000)
        let once = clock.measure { _ = TextFolding.fold(short, [.ignoringCase]) }
        let sixteen = clock.measure { _ = TextFolding.fold(long, [.ignoringCase]) }
        // The text is sixteen times as long; quadratic time would be 256 times as much.
        #expect(sixteen < once * 80 + .milliseconds(50))
        #expect(TextFolding.fold("E\u{301}Å가", [.ignoringCase, .ignoringDiacritics]) == "ea가")
        #expect(TextFolding.composed("e\u{301}\u{1100}\u{1161}").utf8.elementsEqual("é가".utf8))
    }

    /// Folding a short text with marks takes two microseconds, thirty times as long as comparing
    /// two numbers.
    @Test(arguments: [
        "ANY words ==[c] $x", "ANY words CONTAINS $x", "ANY words <[cd] $x", "ANY words < $x",
        "SUBQUERY(words, $y, $x ==[c] $y).@count > 0", "ANY words LIKE[c] $x",
    ])
    func `many short texts with marks are counted by the time that they take`(inner: String) throws
    {
        let format = "SUBQUERY(tags, $x, \(inner)).@count > 0"
        let predicate = try PreparedPredicate(RecordPredicate(format: format))
        #expect(predicate.weight.isMetered)
        func outcome(_ text: String, _ count: Int) -> PredicateOutcome {
            let tags = FieldValue.list(Array(repeating: .string(text), count: count))
            let words = FieldValue.list(Array(repeating: .string("y" + text), count: count))
            return predicate.evaluate(on: ["tags": tags, "words": words])
        }
        #expect(outcome("a\u{301}", 300) == .error(.budgetExceeded))
        #expect(outcome("a\u{301}", 30) != .error(.budgetExceeded))
        #expect(outcome("ab", 50) != .error(.budgetExceeded))
    }

    /// Each of these took up to a quarter of a second.
    @Test func `values that are counted or united cost what hashing them takes`() throws {
        let many = Self.list(100_000)
        let marked = FieldValue.list((0..<20_000).map { .string("a\u{301}\u{323}\($0)") })
        let nested = FieldValue.list((0..<40_000).map { .list([.integer(Int64($0))]) })
        for format in [
            "mode(k).@count > 3", "(k UNION k).@count > 3", "(k MINUS k).@count == 0",
            "k.@distinctUnionOfObjects.self != nil",
        ] {
            let predicate = try PreparedPredicate(RecordPredicate(format: format))
            for list in [many, marked, nested] {
                let outcome = predicate.evaluate(on: ["k": list])
                #expect(outcome == .error(.budgetExceeded), "\(format)")
            }
            #expect(predicate.evaluate(on: ["k": Self.list(5_000)]) == .true, "\(format)")
        }
    }

    @Test func `a mode is the most frequent values in the order of their first places`() throws {
        let predicate = try PreparedPredicate(RecordPredicate(format: "mode(k) == {2, 'é', 1}"))
        let list: [FieldValue] = [
            .integer(2), .string("é"), .integer(1), .integer(3), .double(2), .bool(true),
            .string("e\u{301}"),
        ]
        #expect(predicate.evaluate(on: ["k": .list(list)]) == .true)
    }

    /// Folding such a text takes twenty times as long as reading it.
    @Test(arguments: ["\u{1D163}", "b\u{301}\u{323}", "\u{FB2C}"])
    func `long texts with marks are counted by the time that they take`(letter: String) throws {
        let predicate = try PreparedPredicate(
            RecordPredicate(format: "SUBQUERY(words, $x, text CONTAINS[c] $x).@count == 0"))
        let text = String(repeating: letter, count: 90_000 / letter.utf8.count)
        func outcome(_ words: Int) -> PredicateOutcome {
            let list = FieldValue.list(Array(repeating: .string("zz"), count: words))
            return predicate.evaluate(on: ["text": .string(text), "words": list])
        }
        #expect(outcome(1) == .true)
        #expect(outcome(3) == .error(.budgetExceeded))
    }

    /// An evaluation that is not metered must not be able to exceed the budget.
    ///
    /// The test counts the steps of such conditions on records as large as allowed.
    @Test func `conditions that are not metered stay within the budget`() throws {
        let parts = [
            "title == 'x'", "text == 'x'", "ANY tags == 'x'", "'x' IN tags", "text CONTAINS 'q'",
            "tags CONTAINS 'q'", "title IN {'a', 'b'}", "items.price == 3", "text BEGINSWITH 'l'",
            "text LIKE 'a*'", "a[SIZE] == 3", "text < foreign", "ANY a BETWEEN {1, 2}",
            "NONE tags BEGINSWITH 'q'", "title + 1 > 2", "tags.@count > 3", "ALL b > 4",
            "text CONTAINS[c] 'q'", "ANY tags CONTAINS[c] 'q'", "SELF TOKENMATCHES 'q'",
        ]
        for part in parts {
            let predicate = try PreparedPredicate(RecordPredicate(format: part))
            guard !predicate.weight.isMetered else { continue }
            let meter = StepMeter()
            var evaluation = Evaluation(
                record: .map(Self.heavy), variables: [:], now: nil, meter: meter)
            let root = try PreparedNode(predicate.predicate.root, .ofAllDialects(RE2Engine()))
            _ = evaluation.outcome(of: root)
            let bound = (predicate.weight.passes + 1) * EvaluationWeight.reading(of: Self.heavy)
            #expect(meter.taken <= bound, "\(part) takes \(meter.taken)")
        }
    }
}
