public import RelayModel

/// The comparisons that were evaluated for a predicate's outcome on one record, in order.
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
    /// The evaluated comparisons.
    ///
    /// Those that AND or OR skipped because the result was already decided are not included.
    public let comparisons: [ComparisonTrace]

    /// The trace as JSON: one object for each comparison.
    public var json: JSONValue {
        .array(comparisons.map { .object($0.json) })
    }

    /// The trace for people, with one line for each comparison.
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
    /// The outcome of the comparison.
    public internal(set) var outcome: PredicateOutcome
    /// Whether the comparison is inside another one, for example in a SUBQUERY.
    package internal(set) var isNested = false

    init(_ comparison: RecordPredicate.Comparison) {
        self.comparison = comparison
        outcome = .false
    }

    /// The reason for the outcome: the values of all sides that are not constants, or the error.
    public var reason: String { reason(saying: "is") }

    /// Returns the reason with another verb instead of "is".
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

    /// Returns the reason.
    ///
    /// If the comparison has no value, it also names the fields that were read, so that the cause
    /// is visible: "division by zero, price is 5, qty is 0".
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

    /// The maximum number of fields to name for a comparison without a value.
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

    /// Returns the comparison with long values cut to about `bytes` bytes of text, for a reader
    /// that shows no more.
    ///
    /// A record of a megabyte may be on both sides of each of thousands of comparisons.
    package func cut(beyond bytes: Int) -> ComparisonTrace {
        var cut = self
        cut.left = left?.beginning(bytes)
        cut.right = right?.beginning(bytes)
        return cut
    }

    /// Returns the value's text for people, cut if it is long.
    private static func shown(_ value: FieldValue) -> String {
        let text = FormatPrinter.text(of: value.beginning(400))
        return text.utf8.count > 200 ? "\(text.prefix(200))…" : text
    }
}
