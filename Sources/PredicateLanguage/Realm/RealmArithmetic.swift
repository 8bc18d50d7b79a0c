import RelayModel

/// Arithmetic by Realm's rules: in integers if both sides are integers, else in doubles.
///
/// The result is nil if a side is nil or not a number.
enum RealmArithmetic {
    /// Applies an operator to two sides.
    ///
    /// Lists are processed element by element.
    static func apply(
        _ symbol: RecordPredicate.ArithmeticOperator, _ left: RealmEvaluator.Operand,
        _ right: RealmEvaluator.Operand
    ) throws(EvaluationError) -> RealmEvaluator.Operand {
        switch (left, right) {
        case (.single(let one), .single(let other)):
            return .single(try apply(symbol, one, other))
        case (.list(let many), .single(let one)):
            var results: [FieldValue] = []
            for value in many { results.append(try apply(symbol, value, one)) }
            return .list(results)
        case (.single(let one), .list(let many)):
            var results: [FieldValue] = []
            for value in many { results.append(try apply(symbol, one, value)) }
            return .list(results)
        case (.list(let many), .list(let others)):
            var results: [FieldValue] = []
            for (one, other) in zip(many, others) {
                results.append(try apply(symbol, one, other))
            }
            return .list(results)
        }
    }

    /// Applies an operator to two values.
    static func apply(
        _ symbol: RecordPredicate.ArithmeticOperator, _ left: FieldValue, _ right: FieldValue
    ) throws(EvaluationError) -> FieldValue {
        if case .integer(let one) = left, case .integer(let other) = right {
            return .integer(try integer(symbol, one, other))
        }
        guard let one = left.numberAsDouble, let other = right.numberAsDouble else {
            return .null
        }
        switch symbol {
        case .add: return .double(one + other)
        case .subtract: return .double(one - other)
        case .multiply: return .double(one * other)
        case .divide: return .double(one / other)
        default: throw .wrongKind(operation: symbol.rawValue, found: "a Realm query")
        }
    }

    private static func integer(
        _ symbol: RecordPredicate.ArithmeticOperator, _ left: Int64, _ right: Int64
    ) throws(EvaluationError) -> Int64 {
        let result: (partialValue: Int64, overflow: Bool)
        switch symbol {
        case .add: result = left.addingReportingOverflow(right)
        case .subtract: result = left.subtractingReportingOverflow(right)
        case .multiply: result = left.multipliedReportingOverflow(by: right)
        case .divide:
            // In Realm, a division by zero results in the extreme integer with the dividend's sign.
            if right == 0 { return left < 0 ? .min : .max }
            result = left.dividedReportingOverflow(by: right)
        default: throw .wrongKind(operation: symbol.rawValue, found: "a Realm query")
        }
        guard !result.overflow else { throw .overflow }
        return result.partialValue
    }
}
