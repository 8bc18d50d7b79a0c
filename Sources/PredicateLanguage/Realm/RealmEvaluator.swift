import RelayModel

/// Judges comparisons by Realm's rules.
///
/// Lists without a quantifier mean ANY, booleans are no numbers, kinds that cannot be compared do
/// not match, and an empty needle is found in every text.
struct RealmEvaluator {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression
    typealias Comparison = RecordPredicate.Comparison
    typealias Quantifier = RecordPredicate.Quantifier

    /// The record.
    let record: FieldValue
    /// The values of variables, without `$`.
    var variables: RecordFields
    /// The value of `now()`.
    let now: Timestamp?
    /// What counts the steps of a condition that could take too many.
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

    /// A side of a comparison: one value, or what came from a list.
    enum Operand {
        case single(FieldValue)
        case list([FieldValue])

        /// Whether this is one value that a link cannot be compared with.
        var isScalar: Bool {
            switch self {
            case .list, .single(.null), .single(.map), .single(.reference): false
            case .single: true
            }
        }

        /// The value for a trace.
        var fieldValue: FieldValue {
            switch self {
            case .single(let value): value
            case .list(let values): .list(values)
            }
        }
    }

    /// Whether the record satisfies a part of a predicate.
    ///
    /// - Throws: ``EvaluationError`` if there is no answer.
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

    /// Judges one comparison, and says what its two sides were.
    ///
    /// `test` is what the comparison asks of two values, where that has been prepared.
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

    /// How many of `values` must pass; without a quantifier, one.
    private func holds(
        _ quantifier: Quantifier?, _ values: [FieldValue], _ test: (FieldValue) -> Bool
    ) -> Bool {
        switch quantifier ?? .any {
        case .any: values.contains(where: test)
        case .all: values.allSatisfy(test)
        case .none: !values.contains(where: test)
        }
    }

    /// Two lists without a quantifier, not both empty, are compared element by element.
    private func holdsPairwise(
        _ test: Test, _ left: [FieldValue], _ right: [FieldValue]
    ) -> Bool {
        if test.comparator == .notEqual {
            return left.count != right.count || !zip(left, right).allSatisfy { !test.holds($0, $1) }
        }
        return left.count == right.count && zip(left, right).allSatisfy { test.holds($0, $1) }
    }

    /// A dictionary against a scalar, or under a quantifier, stands for its values; nil under a
    /// quantifier for an empty list.
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
        case .failure: throw .wrongKind(operation: "GEOWITHIN", found: "what is not a shape")
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

    /// A shape with the values of its variables.
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
