import RegularExpressions
import RelayModel
import RelayTestKit
import Testing

@testable import PredicateLanguage

/// Compares the program of a prepared predicate with the evaluator, which defines the right
/// answer.
@Suite("A program answers as the evaluator does") struct ProgramOracleTests {
    typealias Comparison = RecordPredicate.Comparison
    typealias Quantifier = RecordPredicate.Quantifier

    /// Values of all kinds, with pairs that are nearly the same.
    private static let values: [FieldValue] = [
        .null, .bool(true), .bool(false), .integer(1), .integer(0), .integer(-3),
        .integer(9_007_199_254_740_993), .integer(.max), .integer(.min),
        .double(1), .double(-0.0), .double(1.5), .double(9_007_199_254_740_992),
        .double(9.223372036854775807e18), .double(.nan), .double(.infinity),
        .string(""), .string("a"), .string("A"), .string("ab"), .string("é"), .string("e\u{301}"),
        .string("\u{212A}"), .string("K"), .string("*b"), .string("1"),
        .timestamp(Timestamp(seconds: 1)), .timestamp(Timestamp(seconds: 1, nanoseconds: 1)),
        .bytes([97]), .uuid(UUIDBytes(high: 1, low: 2)), .objectID(Array(repeating: 7, count: 12)),
        .list([]), .list([.integer(1), .integer(2)]), .list([.integer(2), .integer(1)]),
        .list([.null, .string("a"), .string("É")]), .list([.double(0.5), .double(2)]),
        .list([.integer(1), .list([.integer(1)])]), .list([.map(["b": .integer(1)])]),
        .set([.integer(1), .string("a")]), .map(["b": .integer(1)]), .map([:]),
    ]

    private static let optionSets: [RecordPredicate.TextOptions] = [
        [], .ignoringCase, .ignoringDiacritics, .normalized,
    ]

    private static func isAboutText(_ side: RecordPredicate.Expression) -> Bool {
        switch side.literal {
        case .string, .list: true
        default: false
        }
    }

    /// Returns every comparison of `left` with `right`, by the rules of every dialect.
    private static func comparisons(
        _ left: RecordPredicate.Expression, _ right: RecordPredicate.Expression
    ) -> [Comparison] {
        var all: [Comparison] = []
        for comparator in RecordPredicate.Comparator.allCases {
            for quantifier: Quantifier? in [nil] + Quantifier.allCases {
                for rules in RecordPredicate.RuleSet.allCases {
                    for options in isAboutText(right) || isAboutText(left) ? optionSets : [[]] {
                        var comparison = Comparison(
                            left, comparator, right, options: options, quantifier: quantifier)
                        comparison.rules = rules
                        all.append(comparison)
                    }
                }
            }
        }
        return all
    }

    @Test func `every comparison of a field with a constant agrees`() throws {
        for constant in Self.values {
            for comparison in Self.comparisons(.field("a"), .constant(constant)) {
                try check(.comparison(comparison))
            }
        }
    }

    @Test func `every comparison of a constant with a field agrees`() throws {
        for constant in Self.values where constant.elements == nil {
            for comparison in Self.comparisons(.constant(constant), .field("a"))
            where comparison.quantifier == nil {
                try check(.comparison(comparison))
            }
        }
    }

    @Test func `paths through other values and arithmetic agree`() throws {
        let sides: [RecordPredicate.Expression] = [
            .field("a", "b"), .field("c"),
            .arithmetic(.add, .field("a"), .constant(.integer(1))),
            .arithmetic(.multiply, .negative(.field("a")), .constant(.double(0.5))),
            .arithmetic(.divide, .constant(.integer(7)), .field("a")),
            .arithmetic(.subtract, .field("c"), .field("a")),
        ]
        for left in sides {
            for right in sides + [.constant(.integer(1)), .constant(.string("a"))] {
                for comparison in Self.comparisons(left, right)
                where comparison.options.isEmpty {
                    try check(.comparison(comparison))
                }
            }
        }
    }

    @Test func `AND, OR and NOT of random comparisons agree`() throws {
        var generator = SeededGenerator(seed: 7)
        let parts = Self.values.flatMap { value in
            Self.comparisons(
                .field(["a", "c"].randomElement(using: &generator) ?? "a"), .constant(value))
        }
        for _ in 0..<4000 {
            try check(Self.tree(of: parts, depth: 4, &generator))
        }
    }

    private static func tree(
        of parts: [Comparison], depth: Int, _ generator: inout SeededGenerator
    ) -> RecordPredicate.Node {
        switch Int.random(in: 0..<(depth == 0 ? 1 : 6), using: &generator) {
        case 1: return .not(tree(of: parts, depth: depth - 1, &generator))
        case 2, 3:
            let count = Int.random(in: 0...3, using: &generator)
            return .and((0..<count).map { _ in tree(of: parts, depth: depth - 1, &generator) })
        case 4, 5:
            let count = Int.random(in: 0...3, using: &generator)
            return .or((0..<count).map { _ in tree(of: parts, depth: depth - 1, &generator) })
        default:
            let part = parts[Int.random(in: 0..<parts.count, using: &generator)]
            return .comparison(part)
        }
    }

    private func check(_ node: RecordPredicate.Node) throws {
        let predicate = RecordPredicate(node)
        var layout = FieldLayout()
        guard let prepared = try? PreparedPredicate(predicate, layout: &layout) else { return }
        for (index, value) in Self.values.enumerated() {
            let other = Self.values[(index &* 7 &+ 3) % Self.values.count]
            let fields: RecordFields = ["a": value, "c": other]
            let truth = prepared.reference(onValue: .map(fields))
            let named = prepared.evaluate(on: fields)
            let placed = prepared.evaluate(on: layout.row(of: fields))
            if named != truth || placed != truth {
                Issue.record("\(predicate.canonicalText) on \(fields): \(named) for \(truth)")
            }
        }
    }
}
