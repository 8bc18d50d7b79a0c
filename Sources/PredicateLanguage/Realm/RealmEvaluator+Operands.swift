import RelayModel

/// Evaluation of expressions.
extension RealmEvaluator {
    /// Evaluates an expression on the record.
    func operand(_ expression: Expression) throws(EvaluationError) -> Operand {
        try meter?.charge(StepMeter.part)
        switch expression {
        case .constant(let value): return Self.lifted(value)
        case .path(let path):
            if let name = path.fieldName { return Self.lifted(record.member(name)) }
            return try walk(path.components, from: record)
        case .variable(let name): return Self.lifted(try value(of: name))
        case .member(let base, let path):
            if case .subquery(let list, let variable, let node) = base {
                return .single(.integer(try count(list, variable, node)))
            }
            let start = try operand(base)
            return try walk(path.components, from: start.fieldValue)
        case .list(let elements):
            var values: [FieldValue] = []
            for element in elements { values.append(try operand(element).fieldValue) }
            _ = try meter?.extent(of: values)
            return .list(values)
        case .arithmetic(let symbol, let left, let right):
            let first = try operand(left)
            let second = try operand(right)
            try meter?.charge((first.count + second.count) * StepMeter.value)
            return try RealmArithmetic.apply(symbol, first, second)
        case .call(.now, _):
            guard let now else { throw .noClock }
            return .single(.timestamp(now))
        default:
            throw .wrongKind(operation: "Realm Query Language", found: "this expression")
        }
    }

    /// Returns a value as an operand.
    ///
    /// A list is compared element by element.
    static func lifted(_ value: FieldValue) -> Operand {
        switch value {
        case .list(let values): .list(values)
        case .set(let values): .list(values.inOrder)
        default: .single(value)
        }
    }

    private func value(of variable: String) throws(EvaluationError) -> FieldValue {
        guard let value = variables[variable] else { throw .unboundVariable(variable) }
        return value
    }

    /// Returns the number of elements that satisfy the condition of a subquery.
    private func count(
        _ list: Expression, _ variable: String, _ node: Node
    ) throws(EvaluationError) -> Int64 {
        let elements: [FieldValue]
        switch try operand(list) {
        case .list(let values): elements = values
        case .single(.null): elements = []
        case .single(let value): throw .wrongKind(operation: "SUBQUERY", found: value.kind)
        }
        var inner = self
        var count: Int64 = 0
        for element in elements {
            try meter?.charge(StepMeter.binding)
            inner.variables[variable] = element
            if try inner.holds(node) { count += 1 }
        }
        return count
    }

    // MARK: Paths

    /// The state of a walk along a path.
    struct Stand {
        var values: [FieldValue]
        /// Whether the path went through a list, so that there may be any number of values.
        var isFanned = false
        /// Whether the path went through a set or dictionary, whose elements have no order.
        var isUnordered = false

        /// Replaces lists by their elements.
        mutating func open() {
            var isOpen = true
            for value in values {
                switch value {
                case .list: isOpen = false
                case .set: (isOpen, isUnordered) = (false, true)
                default: continue
                }
            }
            if isOpen { return }
            isFanned = true
            values = values.flatMap { $0.elementsInOrder ?? [$0] }
        }

        /// Replaces lists and dictionaries by their elements, and drops all other values.
        mutating func openMembers() {
            isFanned = true
            isUnordered = isUnordered || values.contains { $0.hasNoOrder }
            values = values.flatMap { $0.elementsInOrder ?? $0.memberValuesInOrder ?? [] }
        }
    }

    private func walk(
        _ components: [RecordPredicate.RecordPath.Component], from start: FieldValue
    ) throws(EvaluationError) -> Operand {
        var stand = Stand(values: [start])
        var index = 0
        while index < components.count {
            try meter?.charge(walking: stand.values)
            switch components[index] {
            case .collection(let symbol):
                var rest = components[(index + 1)...]
                let isLast = try apply(symbol, &rest, to: &stand)
                index = rest.startIndex
                if isLast { return operand(stand) }
            case .member(let name) where index == components.count - 1 && Self.asksLength(name):
                Self.length(name, &stand)
                index += 1
            case let component:
                try step(component, &stand)
                index += 1
            }
        }
        try meter?.charge(walking: stand.values)
        stand.open()
        return operand(stand)
    }

    private func operand(_ stand: Stand) -> Operand {
        stand.isFanned ? .list(stand.values) : .single(stand.values.first ?? .null)
    }

    private func step(
        _ component: RecordPredicate.RecordPath.Component, _ stand: inout Stand
    ) throws(EvaluationError) {
        switch component {
        case .member(let name): Self.member(name, &stand)
        case .variableMember(let variable):
            guard case .string(let name) = try value(of: variable) else {
                throw .wrongKind(operation: "a key path", found: "another value")
            }
            Self.member(name, &stand)
        case .element(let expression):
            let index = try operand(expression).fieldValue
            stand.values = stand.values.map { Self.element(of: $0, at: index) }
        case .first: stand.values = stand.values.map { $0.elementsInOrder?.first ?? .null }
        case .last: stand.values = stand.values.map { $0.elementsInOrder?.last ?? .null }
        case .size: Self.count(&stand)
        case .every:
            try meter?.charge(ordering: stand.values)
            stand.openMembers()
        case .collection: break
        }
    }

    /// Follows a member.
    ///
    /// The member of nil is nil, but after a list nil values are dropped.
    private static func member(_ name: String, _ stand: inout Stand) {
        stand.open()
        if !stand.isFanned, stand.values.count == 1 {
            stand.values[0] = stand.values[0].member(name)
            return
        }
        stand.values = stand.values.compactMap { value in
            guard case .map(let members) = value else { return nil }
            return members[name] ?? .null
        }
    }

    /// Returns whether a member's name can mean the lengths of a list's texts.
    ///
    /// Realm reads `length` in this way at the end of a path, ignoring case.
    static func asksLength(_ name: String) -> Bool {
        name.utf8.count == 6 && name.lowercased() == "length"
    }

    /// Applies `list.length`: the number of bytes of each text or binary value in a list, which is
    /// 0 for nil.
    ///
    /// In a list of objects it is a member of that name.
    private static func length(_ name: String, _ stand: inout Stand) {
        stand.open()
        let hasObjects = stand.values.contains { if case .map = $0 { true } else { false } }
        guard stand.isFanned, !hasObjects else { return member(name, &stand) }
        stand.values = stand.values.compactMap { value in
            guard value.isNull || value.hasByteCount else { return nil }
            return .integer(Int64(value.byteCount))
        }
    }

    private static func element(of value: FieldValue, at index: FieldValue) -> FieldValue {
        switch (value, index) {
        case (.list(let elements), .integer(let number)):
            elements.indices.contains(Int(clamping: number)) ? elements[Int(number)] : .null
        case (.map(let members), .string(let key)): members[key] ?? .null
        default: .null
        }
    }

    // MARK: Operators on collections

    /// Applies an operator, and removes the components that belong to it from `rest`.
    ///
    /// Returns whether it ends the path.
    private func apply(
        _ symbol: RecordPredicate.CollectionOperator,
        _ rest: inout ArraySlice<RecordPredicate.RecordPath.Component>, to stand: inout Stand
    ) throws(EvaluationError) -> Bool {
        switch symbol {
        case .count:
            Self.count(&stand)
            return true
        case .keys:
            try meter?.charge(ordering: stand.values)
            stand.isFanned = true
            stand.values = stand.values.flatMap { $0.memberNames }
        case .values:
            try meter?.charge(ordering: stand.values)
            stand.values.removeAll { $0.memberValues == nil }
            stand.openMembers()
        case .type:
            stand.open()
            stand.values = stand.values.map { .string(RealmTypeName(of: $0).rawValue) }
            return true
        case .sum, .average, .minimum, .maximum:
            try meter?.charge(calculating: stand.values)
            try aggregate(symbol, &rest, &stand)
            return true
        case .links:
            try meter?.charge(calculating: stand.values)
            if rest.first == .collection(.count) {
                rest = rest.dropFirst()
                try Self.countLinks(&stand)
                return true
            }
            try Self.links(&stand)
        default: throw .wrongKind(operation: "@\(symbol.rawValue)", found: "a Realm query")
        }
        return false
    }
}
