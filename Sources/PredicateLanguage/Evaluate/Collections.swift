import RelayModel

/// Computations of collection operators and functions over collections.
enum Collections {
    /// Returns the elements of a collection in a deterministic order.
    ///
    /// A dictionary's elements are its values in the order of their names. The order of a set
    /// follows from its elements.
    static func elements(
        of value: FieldValue, _ operation: String
    ) throws(EvaluationError) -> [FieldValue] {
        switch value {
        case .list(let values): return values
        case .set(let values): return values.inOrder
        case .map(let members): return members.valuesInOrder
        default: throw .wrongKind(operation: operation, found: value.kind)
        }
    }

    /// Returns the number of elements, or nil for nil.
    static func size(
        of value: FieldValue, _ operation: String
    ) throws(EvaluationError) -> FieldValue {
        switch value {
        case .null: return .null
        case .list(let values): return .integer(Int64(values.count))
        case .set(let values): return .integer(Int64(values.count))
        case .map(let members): return .integer(Int64(members.count))
        default: throw .wrongKind(operation: operation, found: value.kind)
        }
    }

    /// Returns the sum.
    ///
    /// Nil counts as 0, and the sum of no values is 0.
    static func sum(_ values: [FieldValue]) throws(EvaluationError) -> FieldValue {
        var total = FieldValue.integer(0)
        for value in values where !value.isNull {
            total = try Arithmetic.apply(.add, total, value)
        }
        return total
    }

    /// Returns the mean.
    ///
    /// Nil counts as 0, and the mean of no values is 0, as in Foundation.
    static func average(_ values: [FieldValue]) throws(EvaluationError) -> FieldValue {
        guard !values.isEmpty, let total = Number(try sum(values)) else { return .double(0) }
        return .double(total.double / Double(values.count))
    }

    /// Returns the least or greatest of the values that are not nil, or nil if there are none.
    static func extreme(
        _ values: [FieldValue], _ isBetter: (Int) -> Bool
    ) throws(EvaluationError) -> FieldValue {
        var best = FieldValue.null
        for value in values where !value.isNull {
            if best.isNull {
                if Number(value) == nil {
                    switch value {
                    case .string, .timestamp: break
                    default: throw .unordered(left: value.kind, right: value.kind)
                    }
                }
                best = value
            } else if try AppleRules.order(value, best, [], nilsAreEqual: false, isBetter) {
                best = value
            }
        }
        return best
    }

    /// Returns the values without duplicates, in the order of their first occurrences.
    static func distinct(_ values: [FieldValue]) -> [FieldValue] {
        var seen: Set<FieldValue> = []
        return values.filter { seen.insert($0.inOneForm).inserted }
    }

    /// Returns the elements of all lists as one list.
    ///
    /// Nil counts as an empty list.
    static func joined(_ lists: [FieldValue]) throws(EvaluationError) -> [FieldValue] {
        var joined: [FieldValue] = []
        for list in lists where !list.isNull {
            joined.append(contentsOf: try elements(of: list, "a union of lists"))
        }
        return joined
    }

    /// Computes `UNION`, `INTERSECT` or `MINUS`.
    ///
    /// The result is a set if the left side is one, else a list in the order of the left side.
    static func combine(
        _ symbol: RecordPredicate.ArithmeticOperator, _ left: FieldValue, _ right: FieldValue
    ) throws(EvaluationError) -> FieldValue {
        let first = try elements(of: left, symbol.rawValue)
        let second = try elements(of: right, symbol.rawValue)
        let known = Set(second.map(\.inOneForm))
        let combined: [FieldValue] =
            switch symbol {
            case .union: distinct(first + second)
            case .intersect: distinct(first.filter { known.contains($0.inOneForm) })
            default: distinct(first.filter { !known.contains($0.inOneForm) })
            }
        if case .set = left { return .set(Set(combined)) }
        return .list(combined)
    }
}
