import RelayModel

/// Evaluates comparisons by Firebase's total order, in which all values can be compared.
struct FirebaseEvaluator {
    /// The fields of the child (see ``FirebaseChild/fields``).
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
        if case .path(let path) = comparison.left, path.fieldName == "$key",
            case .string(let key) = left, case .string(let bound) = right
        {
            let holds = Self.holds(
                comparison.comparator, FirebaseKey(key), FirebaseKey(bound))
            return (holds, left, right)
        }
        let holds = Self.holds(
            comparison.comparator, FirebaseValue(left), FirebaseValue(right))
        return (holds, left, right)
    }

    private static func holds<Value: Comparable>(
        _ comparator: RecordPredicate.Comparator, _ left: Value, _ right: Value
    ) -> Bool {
        switch comparator {
        case .equal: left == right
        case .notEqual: left != right
        case .less: left < right
        case .lessOrEqual: left <= right
        case .greater: left > right
        case .greaterOrEqual: left >= right
        default: false
        }
    }

    private func value(
        of expression: RecordPredicate.Expression
    ) throws(EvaluationError) -> FieldValue {
        switch expression {
        case .constant(let value): return value
        case .path(let path): return value(at: path)
        case .call(.now, _):
            guard let now else { throw .noClock }
            return .timestamp(now)
        default:
            throw .wrongKind(operation: "a Firebase query", found: "this expression")
        }
    }

    /// Returns the value at a path, or nil if there is none.
    func value(at path: RecordPredicate.RecordPath) -> FieldValue {
        switch path.fieldName {
        case "$key": return member("$key") ?? member("recordName") ?? .null
        case "$value": return member("$value") ?? record
        case "$priority": return member("$priority") ?? member(".priority") ?? .null
        default: break
        }
        var value = record
        for component in path.components {
            guard case .member(let name) = component else { return .null }
            value = value.member(name)
        }
        return value
    }

    private func member(_ name: String) -> FieldValue? {
        if case .map(let members) = record { members[name] } else { nil }
    }
}

/// A comparison under Firebase's rules.
final class FirebaseComparison: ForeignComparison {
    private let source: RecordPredicate.Comparison

    init(_ source: RecordPredicate.Comparison) {
        self.source = source
    }

    func judge(in evaluation: Evaluation) throws(EvaluationError) -> Judgement {
        let judged = try FirebaseEvaluator(record: evaluation.record, now: evaluation.now)
            .judge(source)
        try evaluation.meter?.charge(judged)
        return judged
    }
}

extension Preparation {
    /// The preparation for Firebase's queries, whose comparisons all follow Firebase's rules.
    static let ofFirebase = Preparation(
        foreign: { FirebaseComparison($0) }, engine: NoRegularExpressions())
}
