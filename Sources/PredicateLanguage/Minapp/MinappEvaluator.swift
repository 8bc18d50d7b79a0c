import RelayModel

/// Evaluates comparisons by Minapp's rules.
///
/// A value of another kind than the constant is not equal to it, and has no order with it. Any
/// element of a list may satisfy a comparison. A date may be an ISO 8601 text in the record. A text
/// in the condition can name a record, a UUID or an object ID.
struct MinappEvaluator {
    /// The record.
    let record: FieldValue
    /// The value of `now()`.
    var now: Timestamp?

    /// Evaluates one comparison.
    ///
    /// Returns whether it holds, and the values of its two sides.
    func judge(
        _ comparison: RecordPredicate.Comparison
    ) throws(EvaluationError) -> Judgement {
        let left = try value(of: comparison.left)
        let right = try value(of: comparison.right)
        return (Self.holds(comparison.comparator, left, right), left, right)
    }

    private func value(
        of expression: RecordPredicate.Expression
    ) throws(EvaluationError) -> FieldValue {
        switch expression {
        case .constant(let value): return value
        case .path(let path):
            var value = record
            for component in path.components {
                guard case .member(let name) = component else { return .null }
                value = value.member(name)
            }
            return value
        case .call(.now, _):
            guard let now else { throw .noClock }
            return .timestamp(now)
        default:
            throw .wrongKind(operation: "a Minapp condition", found: "this expression")
        }
    }

    private static func holds(
        _ comparator: RecordPredicate.Comparator, _ value: FieldValue, _ wanted: FieldValue
    ) -> Bool {
        if comparator == .notEqual { return !holds(.equal, value, wanted) }
        if let elements = value.elements {
            return elements.contains { holds(comparator, $0, wanted) }
        }
        return StrictOrder.holds(comparator, seen(value, against: wanted), wanted)
    }

    /// Returns the value converted to the kind of the constant, where both kinds can represent it.
    private static func seen(_ value: FieldValue, against wanted: FieldValue) -> FieldValue {
        switch (value, wanted) {
        case (.string(let text), .timestamp):
            InternetDate.read(text).map(FieldValue.timestamp) ?? value
        // A Minapp condition can write these values only as texts.
        case (.reference, .string), (.uuid, .string), (.objectID, .string):
            .string(value.plainText)
        default: value
        }
    }
}

/// A comparison under Minapp's rules.
final class MinappComparison: ForeignComparison {
    private let source: RecordPredicate.Comparison

    init(_ source: RecordPredicate.Comparison) {
        self.source = source
    }

    func judge(in evaluation: Evaluation) throws(EvaluationError) -> Judgement {
        let judged = try MinappEvaluator(record: evaluation.record, now: evaluation.now)
            .judge(source)
        try evaluation.meter?.charge(judged)
        return judged
    }
}
