import RegularExpressions
import RelayModel
import Testing

@testable import PredicateLanguage

/// All predicates up to depth 2 over two fields and three values.
@Suite struct SmallWorldTests {
    private typealias Node = RecordPredicate.Node

    private static let values: [FieldValue] = [.null, .integer(1), .string("b")]

    /// Every comparison of a field with a value or the other field.
    private static let comparisons: [Node] = {
        let fields: [RecordPredicate.Expression] = [.field("x"), .field("y")]
        let sides = fields + values.map { .constant($0) }
        let lists: [RecordPredicate.Expression] = [
            .constant(.list(values)), .constant(.list([.integer(0), .integer(1)])),
        ]
        var nodes: [Node] = []
        for comparator in RecordPredicate.Comparator.allCases {
            let isOfLists = comparator == .in || comparator == .between
            for left in fields {
                for right in isOfLists ? lists : sides {
                    nodes.append(
                        .comparison(RecordPredicate.Comparison(left, comparator, right)))
                }
            }
        }
        return nodes
    }()

    /// The same comparisons under every quantifier and every set of options.
    private static let adornedComparisons: [Node] = comparisons.flatMap { node in
        guard case .comparison(let plain) = node else { return [Node]() }
        return (UInt8(0)..<16).flatMap { letters in
            ([nil] + RecordPredicate.Quantifier.allCases).map { quantifier in
                var comparison = plain
                comparison.options = RecordPredicate.TextOptions(rawValue: letters)
                comparison.quantifier = quantifier
                return .comparison(comparison)
            }
        }
    }

    /// The simple parts of deeper predicates: comparisons, their negations, and constants.
    private static let parts: [Node] =
        comparisons + comparisons.map { .not($0) } + [.constant(true), .constant(false)]

    /// All small records: both fields missing, or with any value.
    private static let records: [RecordFields] = (values + [.list([.integer(1)])]).flatMap { x in
        values.map { y in ["x": x, "y": y] }
    }

    @Test func `every predicate of depth 2 is printed and read back`() throws {
        var count = 0
        for node in Self.parts {
            for predicate in [node, .not(node)] {
                try check(RecordPredicate(predicate))
                count += 1
            }
        }
        for left in Self.parts {
            for right in Self.comparisons {
                try check(RecordPredicate(.and([left, right])))
                try check(RecordPredicate(.or([right, left])))
                count += 2
            }
        }
        #expect(count > 30_000)
    }

    @Test func `every quantifier and option is printed and read back`() throws {
        for node in Self.adornedComparisons {
            try check(RecordPredicate(node))
            try check(RecordPredicate(.not(node)))
        }
        #expect(Self.adornedComparisons.count == Self.comparisons.count * 64)
    }

    @Test func `the builder makes what the parser reads`() throws {
        for node in Self.comparisons {
            let built = RecordPredicate(Self.built(node).node)
            let read = try RecordPredicate(format: RecordPredicate(node).canonicalText)
            if built != read { Issue.record("\(node) is built as \(built)") }
        }
        for node in Self.comparisons {
            for other in Self.parts {
                let pairs = [
                    (Self.built(node) && Self.built(other), Node.and([node, other])),
                    (Self.built(node) || Self.built(other), Node.or([node, other])),
                    (!(Self.built(node) && Self.built(other)), Node.not(.and([node, other]))),
                ]
                for (condition, tree) in pairs
                where RecordPredicate(condition.node) != RecordPredicate(tree) {
                    Issue.record("\(tree) is built as \(condition.node)")
                }
            }
        }
    }

    /// Returns a part as it is written with the Swift builder.
    private static func built(_ node: Node) -> PredicateCondition {
        switch node {
        case .constant(let isTrue): return isTrue ? .always : .never
        case .not(let inner): return !built(inner)
        case .comparison(let comparison):
            guard case .path(let path) = comparison.left, let name = path.fieldName else {
                return .never
            }
            let field = RecordFieldReference.record[name]
            return built(comparison.comparator, field, comparison.right)
        case .and, .or: return .never
        }
    }

    private static func built(
        _ comparator: RecordPredicate.Comparator, _ field: RecordFieldReference,
        _ right: RecordPredicate.Expression
    ) -> PredicateCondition {
        let value = PredicateValue(right)
        switch comparator {
        case .equal: return field == value
        case .notEqual: return field != value
        case .less: return field < value
        case .lessOrEqual: return field <= value
        case .greater: return field > value
        case .greaterOrEqual: return field >= value
        case .in: return field.isIn(value)
        case .contains: return field.contains(value)
        case .beginsWith: return field.beginsWith(value)
        case .endsWith: return field.endsWith(value)
        case .like: return field.isLike(value)
        case .matches: return field.matches(value)
        case .between:
            guard case .list(let bounds)? = right.literal, bounds.count == 2 else {
                return field.compare(.between, value)
            }
            return field.isBetween(bounds[0], bounds[1])
        case .tokenMatches, .typeEquals, .geoWithin: return field.compare(comparator, value)
        }
    }

    @Test func `AND, OR and NOT follow from their operands on every record`() throws {
        let prepared = try Self.comparisons.map { try PreparedPredicate(RecordPredicate($0)) }
        for (index, left) in Self.comparisons.enumerated() {
            for other in stride(from: index % 7, to: Self.comparisons.count, by: 7) {
                let right = Self.comparisons[other]
                let both = try PreparedPredicate(RecordPredicate(.and([left, right])))
                let either = try PreparedPredicate(RecordPredicate(.or([left, .not(right)])))
                for record in Self.records {
                    let first = prepared[index].evaluate(on: record)
                    let second = prepared[other].evaluate(on: record)
                    let isBoth = both.evaluate(on: record) == (first == .true ? second : first)
                    let isEither =
                        either.evaluate(on: record)
                        == (first == .false ? Self.contrary(second) : first)
                    // One expectation for each of some ten thousand cases would take longer than
                    // the cases themselves.
                    if !isBoth || !isEither { Issue.record("\(left) with \(right) on \(record)") }
                }
            }
        }
    }

    private static func contrary(_ outcome: PredicateOutcome) -> PredicateOutcome {
        switch outcome {
        case .true: .false
        case .false: .true
        case .error: outcome
        }
    }

    private func check(_ predicate: RecordPredicate) throws {
        let text = predicate.canonicalText
        let again = try RecordPredicate(format: text)
        if again != predicate || again.canonicalText != text {
            Issue.record("\(text) reads back as \(again.canonicalText)")
        }
    }
}
