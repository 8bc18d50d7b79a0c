import Matching
import PredicateLanguage
import RelayModel

extension RecordSchema {
    /// What a predicate may use of a record type.
    init(_ definition: RecordTypeDefinition) {
        var fields: [String: Field] = [:]
        for (name, field) in definition.fields where !name.hasPrefix("___") {
            fields[name] = Field(
                FieldType(field.type), isQueryable: field.uses.contains(.queryable))
        }
        self.init(fields)
    }

    /// What the condition of a subscription may use of a record type, and has to.
    static func ofConditions(_ definition: RecordTypeDefinition) -> RecordSchema {
        var schema = RecordSchema(definition)
        for (name, field) in definition.fields where field.uses.contains(.indexed) {
            schema.fields[name]?.isIndexedQueryable = true
        }
        return schema
    }

    /// What may be taken from what was inferred: which fields hold references, because a text in
    /// the place of one never matches, and nobody is told.
    static func inferred(_ definition: RecordTypeDefinition) -> RecordSchema {
        let references = definition.fields.filter { $0.value.type.element == .reference }
        return RecordSchema(knownOnly: references.mapValues { Field(FieldType($0.type)) })
    }

    /// Whether every record has this field, by one of CloudKit's names for it.
    static func isSystemField(_ name: String) -> Bool {
        SystemField(named: name) != nil
    }
}

extension PredicateError {
    /// This error as the answer to a request whose condition stands at `path`.
    func refusal(of query: SubscriptionQuery, path: String) -> APIError {
        let form = query.form ?? .predicate
        let error = placed(in: query.source, dialect: form.dialect).completed(in: query.source)
        // Of a `where` the path is within it; a filter's begins with `filterBy`.
        let whole = form == .where ? "\(path).where" : path
        var text = "\(path).\(form.rawValue)"
        if let inner = error.path {
            text = inner.isEmpty ? whole : "\(whole).\(inner)"
        } else if form.dialect.isText {
            text += " at byte \(offset)"
        }
        text += ": \(reason)"
        // Realm's reasons say it themselves.
        if let expected, !reason.hasPrefix("expected \(expected)") {
            text += "; expected \(expected)"
        }
        if let hint { text += "; \(hint)" }
        return APIError(
            passes ? .throttled : .badRequest, text, retryAfter: passes ? 1 : nil,
            details: ["predicateError": .object(error.json)])
    }
}
