import RelayModel
import Testing

@testable import PredicateLanguage

/// The cost of nested loops in a condition, computed when it is saved, before any record is known.
@Suite struct NestingPriceTests {
    private static func price(_ format: String) throws -> Int? {
        let predicate = try RecordPredicate(format: format)
        guard case .comparison(let comparison) = predicate.root else { return nil }
        return comparison.nestingPrice
    }

    @Test(
        arguments: [
            "artist == 'x'", "year > 1900", "ANY tags == 'x'", "title CONTAINS[c] 'x'",
            "tags.@count > 3", "title IN {'a', 'b'}", "year + 1 == other * 2",
        ])
    func `a condition without nested loops has no nesting price`(format: String) throws {
        #expect(try Self.price(format) == nil)
    }

    @Test(
        arguments: [
            ("SUBQUERY(a, $x, ANY b == $x).@count > 3", 544),
            ("SUBQUERY(a, $x, $x MATCHES pattern).@count > 3", 544),
            ("SUBQUERY(a, $x, SUBQUERY(b, $y, $x == $y).@count > 0).@count > 0", 672),
            (
                "SUBQUERY(a, $x, SUBQUERY(b, $y, SUBQUERY(c, $z, $z == $y).@count > 0).@count > 0)"
                    + ".@count > 0", 2720
            ),
        ])
    func `each nested loop multiplies the price by four`(format: String, price: Int) throws {
        #expect(try Self.price(format) == price)
    }

    @Test func `more work inside a loop costs more, and prices have a cap`() throws {
        let one = try #require(try Self.price("SUBQUERY(a, $x, ANY b == $x).@count > 0"))
        let two = try #require(
            try Self.price("SUBQUERY(a, $x, ANY b == $x AND ANY c == $x).@count > 0"))
        #expect(two - one == 512)
        func nested(_ depth: Int) -> String {
            let inner = depth == 1 ? "$v1 == 1" : nested(depth - 1)
            return "SUBQUERY(a, $v\(depth), \(inner)).@count > 0"
        }
        let prices = try (2...14).map { try #require(try Self.price(nested($0))) }
        #expect(zip(prices, prices.dropFirst()).allSatisfy { $0 < $1 })
        // The prices of the deepest loops are added, not multiplied.
        let steps = zip(prices, prices.dropFirst()).map { $1 - $0 }
        #expect(Set(steps.suffix(4)).count == 1)
        // Two nested loops exceed what one condition may cost, unless an operator allows more.
        #expect(prices[0] > 500)
    }
}
