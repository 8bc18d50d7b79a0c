import RelayModel

extension FirebaseQuery {
    typealias Comparator = RecordPredicate.Comparator
    typealias Node = RecordPredicate.Node

    /// The condition that a child lies within the bounds.
    ///
    /// The limit is not part of it.
    ///
    /// The comparisons follow ``RecordPredicate/RuleSet/firebase``. Keys, values and priorities are
    /// the fields `$key`, `$value` and `$priority` of ``FirebaseChild/fields``. In a record without
    /// `$key` the field `recordName` is used, and without `$value` the record itself.
    public var predicate: RecordPredicate {
        var nodes: [Node] = []
        if let start { nodes.append(node(for: start, isStart: true)) }
        if let end { nodes.append(node(for: end, isStart: false)) }
        if kinds == .sameAsBound, ordering != .key {
            for case let bound? in [start, end] { nodes += kindNodes(for: bound) }
        }
        return RecordPredicate(.and(nodes))
    }

    private func node(for bound: Bound, isStart: Bool) -> Node {
        let beyond: Comparator = isStart ? .greater : .less
        let orAt: Comparator = isStart ? .greaterOrEqual : .lessOrEqual
        let atBound = bound.isIncluded ? orAt : beyond
        guard let key = bound.key else { return compare(valuePath, atBound, bound.value) }
        return .or([
            compare(valuePath, beyond, bound.value),
            .and([
                compare(valuePath, .equal, bound.value),
                compare(Self.own("$key"), atBound, .string(key)),
            ]),
        ])
    }

    /// Returns the conditions that a value is of the bound's kind, as a range of the total order.
    private func kindNodes(for bound: Bound) -> [Node] {
        switch FirebaseValue(bound.value).rank {
        case .nothing: [compare(valuePath, .equal, .null)]
        case .no, .yes:
            [
                compare(valuePath, .greaterOrEqual, .bool(false)),
                compare(valuePath, .lessOrEqual, .bool(true)),
            ]
        case .number:
            [
                compare(valuePath, .greater, .bool(true)),
                compare(valuePath, .less, .string("")),
            ]
        case .text, .object:
            [
                compare(valuePath, .greaterOrEqual, .string("")),
                compare(valuePath, .less, .map([:])),
            ]
        }
    }

    private var valuePath: RecordPredicate.RecordPath {
        switch ordering ?? .priority {
        case .child(let names): RecordPredicate.RecordPath(names.map { .member($0) })
        case .key: Self.own("$key")
        case .value: Self.own("$value")
        case .priority: Self.own("$priority")
        }
    }

    private static func own(_ name: String) -> RecordPredicate.RecordPath {
        RecordPredicate.RecordPath([.member(name)])
    }

    private func compare(
        _ path: RecordPredicate.RecordPath, _ comparator: Comparator, _ value: FieldValue
    ) -> Node {
        var comparison = RecordPredicate.Comparison(.path(path), comparator, .constant(value))
        comparison.rules = .firebase
        return .comparison(comparison)
    }

    // MARK: Windows

    /// Returns the children that the query selects, in ascending order, even if the limit counts
    /// from the end.
    ///
    /// - Complexity: O(*n* log *n*) in the number of children.
    public func window(of children: [FirebaseChild]) -> [FirebaseChild] {
        // A query's own comparisons have no pattern that could be refused.
        var layout = FieldLayout()
        let prepared = try? PreparedPredicate(predicate, layout: &layout, .ofFirebase)
        let inside = children.filter { !$0.value.isNull }
            .map { (child: $0, fields: $0.fields) }
            .filter { prepared?.evaluate(on: $0.fields) == .true }
            .map { (child: $0.child, place: place(of: $0.fields, key: $0.child.key)) }
            .sorted { $0.place < $1.place }
            .map(\.child)
        return switch limit {
        case nil: inside
        case .first(let count): Array(inside.prefix(count))
        case .last(let count): Array(inside.suffix(count))
        }
    }

    private func place(of fields: RecordFields, key: String) -> (FirebaseValue, FirebaseKey) {
        let value: FieldValue =
            ordering == .key ? .null : FirebaseEvaluator(record: .map(fields)).value(at: valuePath)
        return (FirebaseValue(value), FirebaseKey(key))
    }
}
