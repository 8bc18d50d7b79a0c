import PredicateLanguage
import RelayModel
import Testing

@Suite("Predicates built in Swift")
struct PredicateBuilderTests {
    @Test(arguments: pairs) func `a built predicate equals the parsed one`(
        pair: Pair
    ) throws {
        let parsed = try RecordPredicate(format: pair.format)
        #expect(pair.built == parsed)
        #expect(pair.built.canonicalText == parsed.canonicalText)
    }

    struct Pair: CustomTestStringConvertible, Sendable {
        let format: String
        let built: RecordPredicate

        init(
            _ format: String, _ condition: (RecordFieldReference) -> PredicateCondition
        ) {
            self.format = format
            built = .where(condition)
        }

        var testDescription: String { format }
    }

    static let pairs: [Pair] = [
        Pair("artist == 'artist-1' AND price < 100") {
            $0.artist == "artist-1" && $0.price < 100
        },
        Pair("a == 1 AND b == 2 AND c == 3") { $0.a == 1 && $0.b == 2 && $0.c == 3 },
        Pair("a == 1 OR b == 2 AND NOT c == 3") { $0.a == 1 || $0.b == 2 && !($0.c == 3) },
        Pair("nick == nil OR nick != nil") { $0.nick == nil || $0.nick != nil },
        Pair("address.city == 'Paris'") { $0.address.city == "Paris" },
        Pair("sold == TRUE") { $0.sold == true },
        Pair("price BETWEEN {10, 20}") { $0.price.isBetween(10, 20) },
        Pair("price BETWEEN {low, high}") { $0.price.isBetween($0.low, $0.high) },
        Pair("name IN {'a', 'b'}") { $0.name.isIn(["a", "b"]) },
        Pair("name IN {'a', 1, nil}") { $0.name.isIn(.string("a"), .integer(1), .null) },
        Pair("name BEGINSWITH[c] 'al'") { $0.name.beginsWith("al", .ignoringCase) },
        Pair("name ENDSWITH 'ce'") { $0.name.endsWith("ce") },
        Pair("name CONTAINS[cd] 'lic'") {
            $0.name.contains("lic", [.ignoringCase, .ignoringDiacritics])
        },
        Pair("name LIKE 'a*'") { $0.name.isLike("a*") },
        Pair("name MATCHES 'a.*'") { $0.name.matches("a.*") },
        Pair("ANY tags == 'red'") { any($0.tags) == "red" },
        Pair("ALL kids.age > 3") { all($0.kids.age) > 3 },
        Pair("NONE tags BEGINSWITH 'x'") { none($0.tags).beginsWith("x") },
        Pair("(age + 1) * 2 == 62") { ($0.age + 1) * 2 == 62 },
        Pair("-age < 0") { -$0.age < 0 },
        Pair("kids.@max.age >= 9.5") { $0.kids.collection(.maximum).age >= 9.5 },
        Pair("tags[0] == 'red'") { $0.tags[0] == "red" },
        Pair("TRUEPREDICATE") { _ in .always },
    ]

    @Test func `every small predicate is the same built and parsed`() throws {
        var count = 0
        for (left, leftText) in Self.comparisons {
            try check(left, leftText)
            try check(!left, "NOT \(leftText)")
            for (right, rightText) in Self.comparisons {
                try check(left && right, "\(leftText) AND \(rightText)")
                try check(left || right, "\(leftText) OR \(rightText)")
                try check(!(left && right), "NOT (\(leftText) AND \(rightText))")
                count += 3
            }
        }
        #expect(count == 3 * 36 * 36)
    }

    private func check(_ condition: PredicateCondition, _ text: String) throws {
        let built = RecordPredicate(condition.node)
        #expect(try RecordPredicate(format: text) == built)
    }

    /// All comparisons with six comparators over two fields and three values.
    private static let comparisons: [(PredicateCondition, String)] = {
        var comparisons: [(PredicateCondition, String)] = []
        let record = RecordFieldReference.record
        for field in ["a", "b"] {
            for (value, text) in [
                (FieldValue.integer(1), "1"), (.string("x"), "'x'"), (.null, "nil"),
            ] {
                let side = record[field]
                comparisons.append((side == value, "\(field) == \(text)"))
                comparisons.append((side != value, "\(field) != \(text)"))
                comparisons.append((side < value, "\(field) < \(text)"))
                comparisons.append((side <= value, "\(field) <= \(text)"))
                comparisons.append((side > value, "\(field) > \(text)"))
                comparisons.append((side >= value, "\(field) >= \(text)"))
            }
        }
        return comparisons
    }()
}
