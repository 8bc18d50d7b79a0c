import RegularExpressions
import RelayModel
import RelayTestKit
import Testing

@testable import PredicateLanguage

/// A condition that is reported as never true must hold for no record, in any dialect.
///
/// Random conditions over two fields are checked against the evaluator in a small world.
@Suite struct NeverTrueTests {
    typealias Node = RecordPredicate.Node
    typealias Comparison = RecordPredicate.Comparison
    typealias Comparator = RecordPredicate.Comparator

    /// Values, with pairs that are nearly the same.
    private static let scalars: [FieldValue] = [
        .null, .bool(true), .bool(false), .integer(0), .integer(1), .integer(3), .double(1),
        .double(-0.0), .double(1.5), .double(.nan), .string(""), .string("a"), .string("ab"),
        .string("A"), .string("K"), .string("\u{212A}"), .string("\u{E9}"), .string("e\u{301}"),
        .timestamp(Timestamp(seconds: 0)), .timestamp(Timestamp(seconds: 9)), .bytes([0x61]),
    ]

    /// All values that a field may hold.
    private static let values: [FieldValue] =
        scalars + [
            .list([]), .list([.null]), .list([.integer(1), .integer(3)]), .list([.string("a")]),
            .list([.string("ab"), .null, .integer(0)]), .set([.integer(1), .string("A")]),
            .map(["k": .string("a"), "l": .integer(3)]), .map([:]),
        ]

    private static let others: [FieldValue] = [
        .null, .integer(1), .string("a"), .timestamp(Timestamp(seconds: 9)),
        .list([.integer(1), .string("ab")]),
    ]

    private static func constant(
        _ comparator: Comparator, _ generator: inout SeededGenerator
    ) -> FieldValue {
        func one() -> FieldValue { scalars.randomElement(using: &generator) ?? .null }
        switch comparator {
        case .between: return .list([one(), one()])
        case .in: return .list((0..<Int.random(in: 0...3, using: &generator)).map { _ in one() })
        default: return Int.random(in: 0..<12, using: &generator) == 0 ? .list([one()]) : one()
        }
    }

    private static let relational: [Comparator] = [
        .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual,
    ]

    /// Returns a field, or now and then an expression that is computed from it.
    private static func calculated(
        _ name: String, _ rules: RecordPredicate.RuleSet, _ generator: inout SeededGenerator
    ) -> RecordPredicate.Expression {
        let field = RecordPredicate.Expression.field(name)
        let count = RecordPredicate.Expression.path(
            RecordPredicate.RecordPath([.member(name), .collection(.count)]))
        switch (rules, Int.random(in: 0..<24, using: &generator)) {
        case (.apple, 0), (.realm, 0): return count
        case (.apple, 1): return .call(.length, [field])
        case (.apple, 2): return .call(.uppercase, [field])
        case (.apple, 3): return .negative(field)
        case (.apple, 4):
            let target = RecordPredicate.CastType.allCases.randomElement(using: &generator)
            return .cast(field, target ?? .string)
        default: return field
        }
    }

    private static func comparison(
        _ rules: RecordPredicate.RuleSet, _ generator: inout SeededGenerator
    ) -> Comparison {
        let all = Comparator.allCases.filter { $0 != .geoWithin }
        var comparator = (rules == .minapp ? relational : all).randomElement(using: &generator)
        // Equality leaves few values, so it is drawn more often.
        if Int.random(in: 0..<3, using: &generator) == 0 { comparator = .equal }
        let asked = comparator ?? .equal
        let field = calculated(
            Int.random(in: 0..<6, using: &generator) == 0 ? "y" : "x", rules, &generator)
        let value = RecordPredicate.Expression.constant(constant(asked, &generator))
        let isMirrored = rules != .minapp && Int.random(in: 0..<8, using: &generator) == 0
        var comparison =
            isMirrored ? Comparison(value, asked, field) : Comparison(field, asked, value)
        comparison.rules = rules
        guard rules != .minapp else { return comparison }
        if Int.random(in: 0..<6, using: &generator) == 0 { comparison.options = .ignoringCase }
        if Int.random(in: 0..<8, using: &generator) == 0 {
            comparison.quantifier = RecordPredicate.Quantifier.allCases.randomElement(
                using: &generator)
        }
        return comparison
    }

    private static func part(
        _ rules: RecordPredicate.RuleSet, _ generator: inout SeededGenerator
    ) -> Node {
        let one = Node.comparison(comparison(rules, &generator))
        switch Int.random(in: 0..<8, using: &generator) {
        case 0: return .not(one)
        case 1: return .or([one, .comparison(comparison(rules, &generator))])
        default: return one
        }
    }

    private static func isNever(_ warnings: [PredicateWarning]) -> Bool {
        warnings.contains { $0.kind == .neverTrue && $0.reason.hasSuffix("this condition") }
    }

    private static func keeps(_ value: FieldValue, to type: RecordSchema.FieldType) -> Bool {
        switch (value, type) {
        case (.null, _), (_, .mixed), (.string, .string), (.integer, .integer),
            (.integer, .double), (.double, .double), (.bool, .boolean), (.timestamp, .timestamp),
            (.bytes, .bytes):
            true
        default: false
        }
    }

    private static let types: [RecordSchema.FieldType] = [
        .string, .integer, .double, .boolean, .timestamp, .bytes, .mixed,
    ]

    @Test(arguments: [RecordPredicate.RuleSet.apple, .realm, .minapp], Seeds.all)
    func `no record satisfies a condition that is reported as never true`(
        rules: RecordPredicate.RuleSet, seed: UInt64
    ) throws {
        var generator = SeededGenerator(seed: seed)
        var told = 0
        for _ in 0..<3_000 {
            let count = Int.random(in: 1...3, using: &generator)
            let predicate = RecordPredicate(
                .and((0..<count).map { _ in Self.part(rules, &generator) }))
            let type = Self.types.randomElement(using: &generator) ?? .mixed
            let schema = RecordSchema(["x": .init(type), "y": .init(.mixed)])
            let isNeverAtAll = Self.isNever(predicate.ownWarnings)
            let isNever = isNeverAtAll || Self.isNever(predicate.ownWarnings(by: schema))
            guard isNever, let prepared = try? PreparedPredicate(predicate) else { continue }
            told += 1
            for x in Self.values where isNeverAtAll || Self.keeps(x, to: type) {
                for y in Self.others
                where prepared.evaluate(on: ["x": x, "y": y]) == .true {
                    Issue.record("\(predicate.canonicalText) is true of x \(x), y \(y)")
                    return
                }
            }
        }
        #expect(told > 100)
    }

    @Test func `a pattern from a field is not reported as never true`() throws {
        let text = #"NOT "K" MATCHES x AND x == "A""#
        let predicate = try RecordPredicate(format: text)
        #expect(!Self.isNever(predicate.ownWarnings))
    }

    /// Comparing each depth with all values and with everything below it would take some millions
    /// of comparisons.
    ///
    /// Comparing each element of one list with each of another would take as many.
    @Test func `deeply nested conditions are judged within bounds`() throws {
        let few = (0..<40).map { "\($0)" }.joined(separator: ", ")
        let many = (0..<500).map { "x == \(1_000 + $0)" }.joined(separator: " OR ")
        let innermost = "x IN {\(few)} AND (\(many))"
        var format = many
        for level in 0..<60 {
            format = "(x IN {\(few)} AND (\(format))) OR x == \(5_000 + level)"
        }
        func isNever(_ format: String) throws -> Bool {
            Self.isNever(try RecordPredicate(format: format).ownWarnings)
        }
        let lists = (0..<4_000).map { "{\($0)}" }.joined(separator: ", ")
        let others = (0..<4_000).map { "{{\($0)}}" }.joined(separator: ", ")
        let deep = try isNever("y == 1 AND (\(format))")
        let product = try isNever("ANY {\(lists)} IN {\(others)}")
        let alone = try isNever(innermost)
        #expect([deep, product, alone] == [false, false, true])
    }

    /// Comparing each value of one list with each of another, again for every comparison that
    /// follows, would take some ten thousand million comparisons.
    @Test func `long lists are judged once, whatever else is compared`() throws {
        func list(_ values: Range<Int>) -> String {
            let texts = values.map { "\($0)" }
            return "x IN {\(texts.joined(separator: ", "))}"
        }
        func isNever(_ parts: [String]) throws -> Bool {
            Self.isNever(
                try RecordPredicate(format: parts.joined(separator: " AND ")).ownWarnings)
        }
        let bounds = (100..<250).map { "x > 9998.\($0)" }
        let first = list(0..<10_000)
        let others = (0..<40).map { "x != \($0)" }
        let last = try isNever([first] + others + bounds)
        let none = try isNever([first] + bounds + ["x > 9999"])
        let apart = try isNever([first, list(10_000..<20_000)])
        let one = try isNever([list(9_999..<19_999), first])
        #expect([last, none, apart, one] == [false, true, true, false])
        // A conjunction inside another one is judged together with it.
        let nested = try isNever(["(x > 1 AND (y == 2 AND (y == 3 AND x == 5)))", "x < 9"])
        #expect(nested)
    }
}
