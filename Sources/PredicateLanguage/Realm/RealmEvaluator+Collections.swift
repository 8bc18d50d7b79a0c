import RelayModel

/// Collection operators such as `@count` and `@sum`.
extension RealmEvaluator {
    /// Applies `@count`.
    ///
    /// The count of a collection is the number of its elements, that of a text or binary data its
    /// length in bytes, that of nil 0, and that of a link 1. Other values have no count, and become
    /// nil. After a list, texts and lists of plain values are counted one by one, and all other
    /// elements together.
    static func count(_ stand: inout Stand) {
        if stand.isFanned, stand.values.contains(where: \.hasByteCount) {
            stand.values = stand.values.map { value in
                value.hasByteCount ? .integer(Int64(value.byteCount)) : .null
            }
            return
        }
        if stand.isFanned {
            if stand.values.contains(where: \.isPlainList) {
                stand.values = stand.values.map { .integer(Int64($0.elements?.count ?? 0)) }
                return
            }
            stand.open()
            stand.isFanned = false
            stand.values = [.integer(Int64(stand.values.count))]
            return
        }
        let value = stand.values.first ?? .null
        let count: Int
        switch value {
        case .list(let elements): count = elements.count
        case .set(let elements): count = elements.count
        case .map(let members): count = members.count
        case .null: count = 0
        case .reference: count = 1
        default:
            guard value.hasByteCount else {
                stand.values = [.null]
                return
            }
            count = value.byteCount
        }
        stand.values = [.integer(Int64(count))]
    }

    /// Applies `@links`, which reads the member `@links` of each object.
    ///
    /// That member holds the objects that link to it, by type and property.
    static func links(_ stand: inout Stand) throws(EvaluationError) {
        stand.open()
        var links: [FieldValue] = []
        for value in stand.values where !(value.isNull && stand.isFanned) {
            links.append(value.isNull ? .null : try incomingLinks(of: value))
        }
        stand.values = links
    }

    /// Applies `@links.@count`, the number of objects that link to an object by any property.
    ///
    /// After a list, the links to all its objects are counted together.
    static func countLinks(_ stand: inout Stand) throws(EvaluationError) {
        try links(&stand)
        var count = 0
        for links in stand.values {
            let properties = (links.memberValues ?? []).flatMap { $0.memberValues ?? [] }
            count += properties.reduce(0) { $0 + ($1.elements?.count ?? 0) }
        }
        stand.isFanned = false
        stand.values = [.integer(Int64(count))]
    }

    private static func incomingLinks(of value: FieldValue) throws(EvaluationError) -> FieldValue {
        guard case .map(let members) = value, case .map? = members["@links"] else {
            throw .wrongKind(
                operation: "@links",
                found: "a record without the member \"@links\", which lists its incoming links")
        }
        return members["@links"] ?? .null
    }

    /// Applies `@min`, `@max`, `@sum` or `@avg`, with the member that may follow.
    func aggregate(
        _ symbol: RecordPredicate.CollectionOperator,
        _ rest: inout ArraySlice<RecordPredicate.RecordPath.Component>, _ stand: inout Stand
    ) throws(EvaluationError) {
        var elements: [FieldValue]
        if stand.isFanned, rest.isEmpty, stand.values.contains(where: \.hasOwnAggregate) {
            var results: [FieldValue] = []
            for value in stand.values {
                let elements = value.elementsInOrder ?? value.memberValuesInOrder ?? []
                results.append(
                    try aggregate(symbol, elements, isUnordered: value.hasNoOrder))
            }
            stand.values = results
            return
        }
        if stand.isFanned {
            stand.open()
            elements = stand.values
        } else {
            let value = stand.values.first ?? .null
            let found: [FieldValue]? =
                value.isNull ? [] : value.elementsInOrder ?? value.memberValuesInOrder
            guard let found else {
                throw .wrongKind(operation: "@\(symbol.rawValue)", found: value.kind)
            }
            elements = found
            stand.isUnordered = value.hasNoOrder
        }
        if case .member(let name)? = rest.first {
            rest = rest.dropFirst()
            elements = elements.compactMap { value in
                guard case .map(let members) = value else { return nil }
                return members[name]
            }
        }
        stand.isFanned = false
        stand.values = [try aggregate(symbol, elements, isUnordered: stand.isUnordered)]
    }

    /// Computes an aggregate.
    ///
    /// The last bits of a sum depend on the order in which its numbers are added, so numbers
    /// without an order are sorted first.
    private func aggregate(
        _ symbol: RecordPredicate.CollectionOperator, _ elements: [FieldValue], isUnordered: Bool
    ) throws(EvaluationError) -> FieldValue {
        var values = elements.filter { !$0.isNull }
        if isUnordered, values.count > Set<FieldValue>.mostOrdered {
            try meter?.charge(values.count * StepMeter.ordering)
            values.putNumbersInOrder()
        }
        switch symbol {
        case .minimum: return values.min(by: StrictOrder.precedes) ?? .null
        case .maximum: return values.max(by: StrictOrder.precedes) ?? .null
        case .sum: return try Self.sum(values)
        default:
            let numbers = values.compactMap(\.numberAsDouble)
            if numbers.isEmpty { return .null }
            return .double(numbers.reduce(0, +) / Double(numbers.count))
        }
    }

    /// Returns the sum of all numbers.
    ///
    /// Other values are ignored.
    private static func sum(_ values: [FieldValue]) throws(EvaluationError) -> FieldValue {
        var total = FieldValue.integer(0)
        for value in values where value.numberAsDouble != nil {
            total = try RealmArithmetic.apply(.add, total, value)
        }
        return total
    }
}

extension FieldValue {
    /// Whether this is a list of plain values.
    ///
    /// Realm counts and sums such a list for each object that has one, but counts lists of links
    /// together.
    var isPlainList: Bool {
        elements?.contains { !$0.isNull && $0.memberValues == nil } ?? false
    }

    /// Whether Realm aggregates this separately for each of several objects: a list of plain
    /// values, or a dictionary.
    var hasOwnAggregate: Bool {
        if case .map = self { true } else { isPlainList }
    }

    /// The names of a dictionary's members, as texts.
    var memberNames: [FieldValue] {
        if case .map(let members) = self { members.namesInOrder.map(FieldValue.string) } else { [] }
    }
}
