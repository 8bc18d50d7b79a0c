import RelayModel

extension Evaluation {
    typealias Step = PreparedExpression.Step

    /// Follows a path from `start`.
    ///
    /// A missing member is nil, and so is a path through nil.
    mutating func follow(
        _ steps: ArraySlice<Step>, from start: FieldValue
    ) throws(EvaluationError) -> FieldValue {
        var current = start
        var rest = steps
        while let step = rest.first {
            let here = rest
            rest = rest.dropFirst()
            try meter?.charge(step, on: current)
            switch step {
            case .member(let name):
                if let next = member(name, of: current) {
                    current = next
                } else {
                    (current, rest) = try mapped(current, here)
                }
            case .variableMember(let variable):
                let name = try memberName(of: variable)
                if let next = member(name, of: current) {
                    current = next
                } else {
                    (current, rest) = try mapped(current, here)
                }
            case .element(let index):
                let index = try value(of: index)
                current = try element(index, of: current)
            case .first: current = try end(of: current, "FIRST") { $0.first }
            case .last: current = try end(of: current, "LAST") { $0.last }
            case .size: current = try Collections.size(of: current, "[SIZE]")
            case .every: current = .list(try Collections.elements(of: current, "[*]"))
            case .collection(let name):
                return try collection(name, of: current, rest)
            }
        }
        return current
    }

    private func memberName(of variable: String) throws(EvaluationError) -> String {
        guard let value = variables[variable] else { throw .unboundVariable(variable) }
        guard case .string(let name) = value else {
            throw .wrongKind(operation: "a key in a variable", found: value.kind)
        }
        return name
    }

    /// Returns the member `name`, or `nil` if `value` is a collection, over whose elements the path
    /// maps.
    private func member(
        _ name: String, of value: FieldValue
    ) -> FieldValue? {
        switch value {
        case .map(let members):
            return members[name] ?? .null
        case .list, .set: return nil
        // Cocoa's `numbers.@max.self`: every value except a dictionary has itself as the member
        // `self`.
        case _ where name == "self": return value
        case .string(let text): return Self.property(name, of: text)
        case .reference(let reference):
            return name == "recordName" || name == "recordID"
                ? .string(reference.recordID.recordName.rawValue) : .null
        default: return name == "description" && !value.isNull ? .string(value.plainText) : .null
        }
    }

    /// Returns a property of Cocoa's strings, as far as predicates in practice use it, or nil.
    private static func property(_ name: String, of text: String) -> FieldValue {
        switch name {
        case "length": .integer(Int64(text.utf16.count))
        case "uppercaseString": .string(text.uppercased())
        case "lowercaseString": .string(text.lowercased())
        case "intValue", "integerValue", "longLongValue":
            .integer(Int64(text.prefix { $0.isNumber || $0 == "-" || $0 == "+" }) ?? 0)
        case "doubleValue", "floatValue": .double(Double(text) ?? 0)
        case "description": .string(text)
        default: .null
        }
    }

    /// Applies the leading members of a path to each element.
    ///
    /// Returns the list of results, and the rest of the path, which applies to that list.
    ///
    /// The caller follows the rest in its own loop. A path can pass through lists as often as fits
    /// into its text (`a.b[*].b[*]`), which is more than calls can be nested. So calls are nested
    /// only as deep as values are.
    private mutating func mapped(
        _ collection: FieldValue, _ steps: ArraySlice<Step>
    ) throws(EvaluationError) -> (list: FieldValue, rest: ArraySlice<Step>) {
        let inner = steps.prefix { step in
            switch step {
            case .member, .variableMember: true
            default: false
            }
        }
        let elements = try Collections.elements(of: collection, "a path")
        var results: [FieldValue] = []
        results.reserveCapacity(elements.count)
        for element in elements {
            try meter?.charge(StepMeter.value)
            results.append(try follow(inner, from: element))
        }
        return (.list(results), steps.dropFirst(inner.count))
    }

    private func element(
        _ index: FieldValue, of value: FieldValue
    ) throws(EvaluationError) -> FieldValue {
        switch (value, index) {
        case (.null, _): return .null
        case (.map(let members), .string(let key)): return members[key] ?? .null
        case (.list(let values), _):
            guard let number = Number(index), let position = Int64(exactly: number.double) else {
                throw .wrongKind(operation: "the index of a list", found: index.kind)
            }
            guard position >= 0, position < values.count else {
                throw .indexOutOfRange(position, count: values.count)
            }
            return values[Int(position)]
        default: throw .wrongKind(operation: "an index", found: value.kind)
        }
    }

    /// Returns the first or last element, or nil for an empty list.
    private func end(
        of value: FieldValue, _ word: String, _ choose: ([FieldValue]) -> FieldValue?
    ) throws(EvaluationError) -> FieldValue {
        switch value {
        case .null: return .null
        case .list(let values): return choose(values) ?? .null
        default: throw .wrongKind(operation: "[\(word)]", found: value.kind)
        }
    }

    /// Applies a collection operator such as `@count`.
    ///
    /// The rest of the path applies to each element.
    private mutating func collection(
        _ name: RecordPredicate.CollectionOperator, of value: FieldValue,
        _ rest: ArraySlice<Step>
    ) throws(EvaluationError) -> FieldValue {
        if value.isNull { return .null }
        if name == .count { return try Collections.size(of: value, "@count") }
        var values: [FieldValue] = []
        for element in try Collections.elements(of: value, "@\(name.rawValue)") {
            try meter?.charge(StepMeter.value)
            values.append(try follow(rest, from: element))
        }
        try meter?.charge(calculating: values)
        if value.hasNoOrder, values.count > Set<FieldValue>.mostOrdered {
            values.putNumbersInOrder()
        }
        switch name {
        case .sum: return try Collections.sum(values)
        case .average: return try Collections.average(values)
        case .minimum: return try Collections.extreme(values) { $0 < 0 }
        case .maximum: return try Collections.extreme(values) { $0 > 0 }
        case .unionOfObjects: return .list(values.filter { !$0.isNull })
        case .distinctUnionOfObjects:
            try meter?.charge(hashing: values)
            return .list(Collections.distinct(values.filter { !$0.isNull }))
        case .unionOfArrays: return .list(try Collections.joined(values))
        case .distinctUnionOfArrays:
            try meter?.charge(hashing: values)
            return .list(Collections.distinct(try Collections.joined(values)))
        case .count, .keys, .values, .type, .links:
            throw .wrongKind(operation: "@\(name.rawValue)", found: value.kind)
        }
    }
}
