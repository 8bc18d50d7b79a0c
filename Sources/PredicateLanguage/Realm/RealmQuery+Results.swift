public import RelayModel

extension RealmQuery {
    /// Returns the indices in `records` of the records that the query finds, in the order of its
    /// suffixes.
    ///
    /// - Throws: ``EvaluationError`` if the evaluation of one of the records has no outcome.
    /// - Complexity: O(*n* log *n*) in the number of records, if the query sorts them.
    public func results(in records: [RecordFields]) throws(EvaluationError) -> [Int] {
        var found: [Int] = []
        let prepared = try prepared()
        for (index, fields) in records.enumerated() {
            switch prepared.evaluate(on: fields) {
            case .true: found.append(index)
            case .false: continue
            case .error(let error): throw error
            }
        }
        for suffix in suffixes {
            switch suffix {
            case .limit(let count): found = Array(found.prefix(count))
            case .sort(let keys): found = try sorted(found, of: records, by: keys)
            case .distinct(let paths): found = try distinct(found, of: records, by: paths)
            }
        }
        return found
    }

    private func prepared() throws(EvaluationError) -> PreparedPredicate {
        do throws(PredicateError) {
            var layout = FieldLayout()
            return try PreparedPredicate(predicate, layout: &layout, .ofRealm)
        } catch {
            throw .badRegularExpression(error.reason)
        }
    }

    private func sorted(
        _ found: [Int], of records: [RecordFields], by keys: [SortKey]
    ) throws(EvaluationError) -> [Int] {
        var rows: [(index: Int, values: [FieldValue])] = []
        for index in found {
            rows.append((index, try values(of: keys.map(\.path), in: records[index])))
        }
        // The standard library's sort is stable, like Realm's.
        rows.sort { one, other in
            for (key, (first, second)) in zip(keys, zip(one.values, other.values)) {
                let (left, right) = key.order == .ascending ? (first, second) : (second, first)
                if StrictOrder.precedes(left, right) { return true }
                if StrictOrder.precedes(right, left) { return false }
            }
            return false
        }
        return rows.map(\.index)
    }

    private func distinct(
        _ found: [Int], of records: [RecordFields], by paths: [RecordPredicate.RecordPath]
    ) throws(EvaluationError) -> [Int] {
        var seen: Set<[FieldValue]> = []
        var kept: [Int] = []
        for index in found
        where seen.insert(try values(of: paths, in: records[index])).inserted {
            kept.append(index)
        }
        return kept
    }

    private func values(
        of paths: [RecordPredicate.RecordPath], in fields: RecordFields
    ) throws(EvaluationError) -> [FieldValue] {
        let evaluator = RealmEvaluator(record: .map(fields))
        var values: [FieldValue] = []
        for path in paths { values.append(try evaluator.operand(.path(path)).fieldValue) }
        return values
    }
}
