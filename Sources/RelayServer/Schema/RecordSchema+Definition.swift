import Matching
import PredicateLanguage
import RelayModel

extension RecordSchema {
    /// Creates the schema that a predicate on a record type is checked against.
    init(_ definition: RecordTypeDefinition) {
        var fields: [String: Field] = [:]
        for (name, field) in definition.fields where !name.hasPrefix("___") {
            fields[name] = Field(
                FieldType(field.type), isQueryable: field.uses.contains(.queryable))
        }
        self.init(fields)
    }

    /// Returns the schema for the condition of a subscription, which may have to use an indexed
    /// field.
    static func ofConditions(_ definition: RecordTypeDefinition) -> RecordSchema {
        var schema = RecordSchema(definition)
        for (name, field) in definition.fields where field.uses.contains(.indexed) {
            schema.fields[name]?.isIndexedQueryable = true
        }
        return schema
    }

    /// Returns the part of an inferred definition that is safe to use: the fields with references.
    ///
    /// A text compared with a reference never matches, and no error would say so.
    static func inferred(_ definition: RecordTypeDefinition) -> RecordSchema {
        let references = definition.fields.filter { $0.value.type.element == .reference }
        return RecordSchema(knownOnly: references.mapValues { Field(FieldType($0.type)) })
    }

    /// Returns whether a name is one of CloudKit's names for a system field, which every record
    /// has.
    static func isSystemField(_ name: String) -> Bool {
        SystemField(named: name) != nil
    }
}

extension PredicateError {
    /// Returns this error as the answer to a request whose condition is at `path`.
    func refusal(of query: SubscriptionQuery, path: String) -> APIError {
        let form = query.form ?? .predicate
        let error = placed(in: query.source, dialect: form.dialect).completed(in: query.source)
        // The path of a `where` is relative to it; the path of a filter begins with `filterBy`.
        let whole = form == .where ? "\(path).where" : path
        var text = "\(path).\(form.rawValue)"
        if let inner = error.path {
            text = inner.isEmpty ? whole : "\(whole).\(inner)"
        } else if form.dialect.isText {
            text += " at byte \(offset)"
        }
        text += ": \(reason)"
        // Realm's reasons contain it already.
        if let expected, !reason.hasPrefix("expected \(expected)") {
            text += "; expected \(expected)"
        }
        if let hint { text += "; \(hint)" }
        return APIError(
            passes ? .throttled : .badRequest, text, retryAfter: passes ? 1 : nil,
            details: ["predicateError": .object(error.json)])
    }
}
