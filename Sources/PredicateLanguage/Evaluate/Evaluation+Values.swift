import RelayModel

extension Evaluation {
    /// Evaluates an expression by NSPredicate's rules.
    mutating func value(
        of expression: PreparedExpression
    ) throws(EvaluationError) -> FieldValue {
        try meter?.charge(StepMeter.part)
        switch expression {
        case .constant(let value): return value
        case .field(let name):
            if case .map(let fields) = record { return fields[name] ?? .null }
            return try follow([.member(name)], from: record)
        case .path(let steps):
            return try follow(steps[...], from: steps.beginsAtField ? record : ownRecord)
        case .variable(let name):
            guard let value = variables[name] else { throw .unboundVariable(name) }
            return value
        case .member(let base, let steps):
            let start = try value(of: base)
            return try follow(steps[...], from: start)
        case .list(let elements):
            let list = FieldValue.list(try values(of: elements))
            // The list may contain the same variable many times.
            _ = try meter?.extent(of: list)
            return list
        case .arithmetic(let symbol, let left, let right):
            let first = try value(of: left)
            let second = try value(of: right)
            try meter?.charge(calculating: [first, second])
            switch symbol {
            case .union, .intersect, .minus: try meter?.charge(hashing: [first, second])
            default: break
            }
            return try Arithmetic.apply(symbol, first, second)
        case .negative(let inner): return try Arithmetic.negate(try value(of: inner))
        case .complement(let inner):
            return try Arithmetic.complement(try value(of: inner))
        case .call(let function, let arguments):
            if function == .now {
                guard let now else { throw .noClock }
                return .timestamp(now)
            }
            let values = try values(of: arguments)
            try meter?.charge(calculating: values)
            switch function {
            case .mode: try meter?.charge(hashing: values)
            case .uppercase, .lowercase: try meter?.charge(StepMeter.folding)
            default: break
            }
            return try Functions.call(function, values)
        case .cast(let inner, let type):
            let value = try value(of: inner)
            try meter?.charge(calculating: [value])
            return try value.cast(to: type)
        case .conditional(let test, let first, let second):
            return try value(of: try holds(test) ? first : second)
        case .subquery(let list, let variable, let condition):
            return try subquery(try value(of: list), variable, condition)
        case .assignment(let name, let inner):
            let value = try value(of: inner)
            variables[name] = value
            return value
        case .anyKey:
            guard case .map(let members) = ownRecord else { return .list([]) }
            try meter?.charge(members.count * StepMeter.ordering)
            return .list(members.valuesInOrder)
        }
    }

    /// The record without system fields, which is what `SELF` and `ANYKEY` mean.
    ///
    /// CloudKit's system fields are never among a record's texts, whether their values are known or
    /// not.
    private var ownRecord: FieldValue {
        guard case .map(let members) = record,
            SystemField.allNames.contains(where: { members[$0] != nil })
        else { return record }
        return .map(members.filter { SystemField(named: $0.key) == nil })
    }

    private mutating func values(
        of expressions: [PreparedExpression]
    ) throws(EvaluationError) -> [FieldValue] {
        var values: [FieldValue] = []
        values.reserveCapacity(expressions.count)
        for expression in expressions { values.append(try value(of: expression)) }
        return values
    }

    /// Returns the elements for which `condition` holds while `variable` is bound to them.
    private mutating func subquery(
        _ list: FieldValue, _ variable: String, _ condition: PreparedNode
    ) throws(EvaluationError) -> FieldValue {
        if list.isNull { return .list([]) }
        let outer = variables[variable]
        defer { variables[variable] = outer }
        var chosen: [FieldValue] = []
        for element in try Collections.elements(of: list, "SUBQUERY") {
            try meter?.charge(StepMeter.binding)
            variables[variable] = element
            if try holds(condition) { chosen.append(element) }
        }
        return .list(chosen)
    }
}

private extension [PreparedExpression.Step] {
    /// Whether a path begins with a field of the record, and not with an operation on the whole
    /// record.
    var beginsAtField: Bool {
        switch first {
        case .member?, .variableMember?: true
        default: false
        }
    }
}
