import PredicateLanguage
import RegularExpressions
import RelayModel

/// Realm queries, which can also sort and limit their results.
extension PredicateLine {
    /// Answers a line with a Realm query.
    ///
    /// Without a schema, `check` examines only the syntax, and arguments may be missing. `evaluate`
    /// on `records` treats them as a table: their fields form the schema, so unknown fields and
    /// incomparable types are errors, as in Realm.
    func answerRealm(
        _ input: PredicateInput, _ now: Timestamp?
    ) throws(PredicateError) -> Answer {
        guard case .string(let text) = input.source else {
            throw PredicateError(.parse, "a Realm query must be a text, found \(input.source.kind)")
        }
        let query = try RealmQuery(parsing: text, arguments: input.arguments)
        let rows = input.records.map(\.members)
        if task == .check {
            if let schema = input.schema { try query.check(against: schema) }
            return accepted(query.predicate, input)
        }
        if let schema = input.schema {
            try query.check(against: schema)
        } else if input.countsRecords {
            try query.check(against: RecordSchema(inferredFrom: rows))
        }
        if query.suffixes.isEmpty {
            return evaluate(try PreparedPredicate(query.predicate), input, now)
        }
        return try arranged(query, rows)
    }

    private func arranged(
        _ query: RealmQuery, _ rows: [RecordFields]
    ) throws(PredicateError) -> Answer {
        do throws(EvaluationError) {
            let found = try query.results(in: rows)
            return Answer(
                json: [
                    "count": .integer(Int64(found.count)),
                    "found": .array(found.map { .integer(Int64($0)) }),
                ], text: "\(found.count) of \(rows.count): records \(found)")
        } catch {
            throw PredicateError(.evaluate, error.reason)
        }
    }
}

extension FieldValue {
    /// The members of a record; empty for a bare value.
    var members: RecordFields {
        if case .map(let members) = self { members } else { [:] }
    }
}
