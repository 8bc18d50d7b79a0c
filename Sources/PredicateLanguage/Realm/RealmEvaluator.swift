import RelayModel

/// Evaluates comparisons by Realm's rules.
///
/// A list without a quantifier means ANY of its elements. Booleans are not numbers. Values of kinds
/// that cannot be compared do not match. An empty needle is found in every text.
struct RealmEvaluator {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression
    typealias Comparison = RecordPredicate.Comparison
    typealias Quantifier = RecordPredicate.Quantifier

    /// The record.
    let record: FieldValue
    /// The values of variables, by name without `$`.
    var variables: RecordFields
    /// The value of `now()`.
    let now: Timestamp?
    /// Counts the steps of a condition that could take too many.
    let meter: StepMeter?

    init(
        record: FieldValue, variables: RecordFields = [:], now: Timestamp? = nil,
        meter: StepMeter? = nil
    ) {
        self.record = record
        self.variables = variables
        self.now = now
        self.meter = meter
    }

    /// A side of a comparison: a single value, or the values of a list.
    enum Operand {
        case single(FieldValue)
        case list([FieldValue])

        /// Whether this is a single value with which a link cannot be compared.
        var isScalar: Bool {
            switch self {
            case .list, .single(.null), .single(.map), .single(.reference): false
            case .single: true
            }
        }

        /// The value as a trace shows it.
        var fieldValue: FieldValue {
            switch self {
            case .single(let value): value
            case .list(let values): .list(values)
            }
        }
    }

    /// Returns whether the record satisfies a part of a predicate.
    ///
    /// - Throws: ``EvaluationError`` if the evaluation has no outcome.
    func holds(_ node: Node) throws(EvaluationError) -> Bool {
        switch node {
        case .constant(let value): return value
        case .comparison(let comparison): return try judge(comparison).holds
        case .not(let inner): return try !holds(inner)
        case .and(let nodes):
            for node in nodes where try !holds(node) { return false }
            return true
        case .or(let nodes):
            for node in nodes where try holds(node) { return true }
            return false
        }
    }

    /// Evaluates one comparison.
    ///
    /// Returns whether it holds, and the values of its two sides.
    ///
    /// `test` is the prepared test of two values, if there is one.
    func judge(
        _ comparison: Comparison, test: Test? = nil
    ) throws(EvaluationError) -> Judgement {
        if comparison.comparator == .geoWithin { return try judgeGeography(comparison) }
        let left = try operand(comparison.left)
        let right = try operand(comparison.right)
        try meter?.charge(left, right, comparison)
        let holds = try holds(comparison, test ?? Test(comparison), left, right)
        return (holds, left.fieldValue, right.fieldValue)
    }

    private func holds(
        _ comparison: Comparison, _ test: Test, _ left: Operand, _ right: Operand
    ) throws(EvaluationError) -> Bool {
        let left = try side(left, comparison.quantifier, against: right)
        var right = try side(right, comparison.rightQuantifier, against: left)
        switch comparison.comparator {
        case .between: return try isBetween(comparison, left, right)
        case .in: right = try collection(right, operation: "IN")
        default: break
        }
        switch (left, right) {
        case (.single(let one), .single(let other)): return test.holds(one, other)
        case (.list(let many), .single(let one)):
            return holds(comparison.quantifier, many) { test.holds($0, one) }
        case (.single(let one), .list(let many)):
            return holds(comparison.rightQuantifier, many) { test.holds(one, $0) }
        case (.list(let many), .list(let others)):
            if comparison.quantifier == nil, comparison.rightQuantifier == nil {
                if many.isEmpty, others.isEmpty { return comparison.comparator == .equal }
                return holdsPairwise(test, many, others)
            }
            return holds(comparison.quantifier, many) { one in
                holds(comparison.rightQuantifier, others) { test.holds(one, $0) }
            }
        }
    }

    /// Returns whether enough of `values` pass the test.
    ///
    /// Without a quantifier, one is enough.
    private func holds(
        _ quantifier: Quantifier?, _ values: [FieldValue], _ test: (FieldValue) -> Bool
    ) -> Bool {
        switch quantifier ?? .any {
        case .any: values.contains(where: test)
        case .all: values.allSatisfy(test)
        case .none: !values.contains(where: test)
        }
    }

    /// Compares two lists without a quantifier element by element.
    ///
    /// At least one of them is not empty.
    private func holdsPairwise(
        _ test: Test, _ left: [FieldValue], _ right: [FieldValue]
    ) -> Bool {
        if test.comparator == .notEqual {
            return left.count != right.count || !zip(left, right).allSatisfy { !test.holds($0, $1) }
        }
        return left.count == right.count && zip(left, right).allSatisfy { test.holds($0, $1) }
    }

    /// Returns the values that a side represents.
    ///
    /// A dictionary that is compared with a scalar, or is under a quantifier, represents its
    /// values. Nil under a quantifier is an empty list.
    private func side(
        _ operand: Operand, _ quantifier: Quantifier?, against other: Operand
    ) throws(EvaluationError) -> Operand {
        switch operand {
        case .list(let values):
            guard other.isScalar, values.contains(where: { $0.memberValues != nil }) else {
                return operand
            }
            return .list(values.flatMap { $0.memberValues ?? [$0] })
        case .single(.map(let members)):
            return quantifier != nil || other.isScalar ? .list(Array(members.values)) : operand
        case .single(.null) where quantifier != nil: return .list([])
        case .single(let value):
            guard quantifier == nil else {
                throw .quantifierOnScalar(found: value.kind)
            }
            return operand
        }
    }

    private func collection(
        _ operand: Operand, operation: String
    ) throws(EvaluationError) -> Operand {
        switch operand {
        case .list: return operand
        case .single(.null): return .list([])
        case .single(let value): throw .wrongKind(operation: operation, found: value.kind)
        }
    }

    private func isBetween(
        _ comparison: Comparison, _ left: Operand, _ right: Operand
    ) throws(EvaluationError) -> Bool {
        guard case .list(let bounds) = right, bounds.count == 2 else { throw .badBounds }
        func test(_ value: FieldValue) -> Bool {
            StrictOrder.holds(.greaterOrEqual, value, bounds[0])
                && StrictOrder.holds(.lessOrEqual, value, bounds[1])
        }
        switch left {
        case .single(let value): return test(value)
        case .list(let values):
            guard comparison.quantifier == .all else {
                throw .wrongKind(operation: "BETWEEN", found: "a list")
            }
            return values.allSatisfy(test)
        }
    }

    private func judgeGeography(
        _ comparison: Comparison
    ) throws(EvaluationError) -> Judgement {
        let area = try resolved(comparison.right)
        let left = try operand(comparison.left)
        try meter?.charge(places: left, in: area)
        let shape: GeographicShape
        switch GeographicShape.read(area) {
        case .success(let read): shape = read
        case .failure: throw .wrongKind(operation: "GEOWITHIN", found: "a value other than a shape")
        }
        func test(_ value: FieldValue) -> Bool {
            GeographicShape.location(value).map(shape.contains) ?? false
        }
        switch left {
        case .single(let value): return (test(value), value, .null)
        case .list(let values):
            if comparison.quantifier == nil, test(.list(values)) {
                return (true, .list(values), .null)
            }
            return (holds(comparison.quantifier, values, test), .list(values), .null)
        }
    }

    /// Returns a shape in which variables are replaced by their values.
    private func resolved(_ expression: Expression) throws(EvaluationError) -> Expression {
        switch expression {
        case .call(let function, let arguments):
            var values: [Expression] = []
            for argument in arguments { values.append(try resolved(argument)) }
            return .call(function, values)
        case .list(let elements):
            var values: [FieldValue] = []
            for element in elements {
                values.append(try resolved(element).literal ?? .null)
            }
            return .constant(.list(values))
        case .variable: return .constant(try operand(expression).fieldValue)
        default: return expression
        }
    }
}
