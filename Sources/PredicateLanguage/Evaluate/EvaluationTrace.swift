public import RelayModel

/// How a predicate came to its outcome on one record: the comparisons that were reached, in order.
///
/// ```swift
/// let condition = try RecordPredicate(format: "price < 100")
/// let prepared = try PreparedPredicate(condition, engine: RE2Engine())
/// let trace = prepared.trace(onValue: .map(["price": .integer(120)]))
/// #expect(trace.text == "`price < 100` is false: price is 120")
/// ```
public struct EvaluationTrace: Sendable, Hashable {
    /// The outcome of the whole predicate.
    public let outcome: PredicateOutcome
    /// What was compared; those behind a decided AND or OR are not here.
    public let comparisons: [ComparisonTrace]

    /// The trace as JSON: one object for each comparison.
    public var json: JSONValue {
        .array(comparisons.map { .object($0.json) })
    }

    /// The trace for people, a line for each comparison.
    public var text: String {
        comparisons.map(\.text).joined(separator: "\n")
    }
}

/// One comparison of a trace.
public struct ComparisonTrace: Sendable, Hashable {
    /// The comparison.
    public let comparison: RecordPredicate.Comparison
    /// The value of the left side; `nil` if it could not be computed.
    public internal(set) var left: FieldValue?
    /// The value of the right side; `nil` if it was not computed.
    public internal(set) var right: FieldValue?
    /// What came out.
    public internal(set) var outcome: PredicateOutcome
    /// Whether it stands inside another comparison, as that of a SUBQUERY does.
    package internal(set) var isNested = false

    init(_ comparison: RecordPredicate.Comparison) {
        self.comparison = comparison
        outcome = .false
    }

    /// Why it came out so: the values of what is not a constant, or the error.
    public var reason: String { reason(saying: "is") }

    /// The same with another word for "is".
    package func reason(saying verb: String) -> String {
        var parts: [String] = []
        if case .error(let error) = outcome { parts.append(error.reason) }
        for (side, value) in [(comparison.left, left), (comparison.right, right)] {
            guard let value, side.literal == nil else { continue }
            parts.append("\(side.canonicalText) \(verb) \(Self.shown(value))")
        }
        if parts.isEmpty { parts.append("both sides are constants") }
        return parts.joined(separator: ", ")
    }

    /// One line for people: "`price < 100` is false: price is 120".
    public var text: String {
        let verdict =
            switch outcome {
            case .true: "is true"
            case .false: "is false"
            case .error: "has no answer"
            }
        return "`\(comparison.canonicalText)` \(verdict): \(reason)"
    }

    /// The same with the fields besides that a side read which came to no value, so that it can be
    /// seen why: "division by zero, price is 5, qty is 0".
    package func reason(
        saying verb: String, reading names: Set<String>, of fields: RecordFields
    ) -> String {
        guard case .error = outcome else { return reason(saying: verb) }
        let sides = [(comparison.left, left), (comparison.right, right)]
        let told = Set(sides.filter { $0.1 != nil }.map(\.0.canonicalText))
        let read = names.subtracting(told).sorted().prefix(Self.mostOperands)
        let operands = read.map { name in
            let value = fields[name] ?? .null
            return "\(name) \(verb) \(value.isNull ? "missing" : Self.shown(value))"
        }
        return ([reason(saying: verb)] + operands).joined(separator: ", ")
    }

    /// Fields that are named of a comparison that came to no value.
    private static let mostOperands = 4

    /// The comparison as JSON.
    public var json: JSONObject {
        var object: JSONObject = ["comparison": .string(comparison.canonicalText)]
        object["left"] = left?.notation
        object["right"] = right?.notation
        switch outcome {
        case .true: object["outcome"] = true
        case .false: object["outcome"] = false
        case .error(let error): object["error"] = .string(error.reason)
        }
        object["reason"] = .string(reason)
        return object
    }

    /// The same with no more of long values than takes so many bytes to show, for whoever shows
    /// less: a record of a megabyte may stand on both sides of each of thousands.
    package func cut(beyond bytes: Int) -> ComparisonTrace {
        var cut = self
        cut.left = left?.beginning(bytes)
        cut.right = right?.beginning(bytes)
        return cut
    }

    /// The value for people, cut where it is long.
    private static func shown(_ value: FieldValue) -> String {
        let text = FormatPrinter.text(of: value.beginning(400))
        return text.utf8.count > 200 ? "\(text.prefix(200))…" : text
    }
}
