import RelayModel

/// Completes `filterBy` with types that a client left out: then the schema decides (CloudKit Web
/// Services Reference), because milliseconds look like a number, and bytes like a text.
struct FilterTypes {
    /// The record type, if it is known.
    let definition: RecordTypeDefinition?

    /// The filters with the types that JSON does not show.
    func completed(_ filterBy: JSONValue) -> JSONValue {
        switch filterBy {
        case .array(let filters): .array(filters.map(filter))
        case .object: filter(filterBy)
        default: filterBy
        }
    }

    /// A query, a subscription's or one for records, with its filters completed.
    func completed(query: JSONObject) -> JSONObject {
        guard let filterBy = query["filterBy"] else { return query }
        var query = query
        query["filterBy"] = completed(filterBy)
        return query
    }

    private func filter(_ json: JSONValue) -> JSONValue {
        guard case .object(var filter) = json, case .object(var value)? = filter["fieldValue"],
            case .string(let name)? =
                Self.given(filter["fieldName"]) ?? filter["systemFieldName"],
            let raw = value["value"], raw != .null
        else { return json }
        if let field = SystemField(named: name) {
            value["value"] = Self.fitted(raw, to: field)
            let isNamed = field.element == .reference && Self.isText(raw)
            if isNamed || value["value"] != raw { value["type"] = nil }
        }
        if let type = databaseType(of: name, value) {
            value["databaseType"] = .string(type.description)
        } else if Self.isUntyped(value["type"]), let element = element(of: name, raw) {
            let isList = if case .array = raw { true } else { false }
            value["type"] = .string(SchemaFieldType(element, isList: isList).description)
        }
        filter["fieldValue"] = .object(value)
        return .object(filter)
    }

    /// The type of a field that holds what CloudKit has no word for, if a filter's value can be of
    /// it: it is answered as a text, and comes back so.
    private func databaseType(of name: String, _ value: JSONObject) -> SchemaFieldType? {
        guard let element = definition?.fields[name]?.type.element, element.isNamedByText,
            let raw = value["value"], Self.isText(raw), Self.isOfTexts(value["type"])
        else { return nil }
        let isList = if case .array = raw { true } else { false }
        let type = SchemaFieldType(element, isList: isList)
        // What is none, as the beginning of one, stays a text, and the check says what is wrong.
        let read = try? FieldDictionary(.compared).value(raw, as: type, path: "")
        return read == nil ? nil : type
    }

    /// Whether a filter says of its value that it is a text, or nothing.
    private static func isOfTexts(_ type: JSONValue?) -> Bool {
        guard case .string(let word)? = type, case .stated(let stated)? = FieldTypeWord(word) else {
            return isUntyped(type)
        }
        return stated.element == .string
    }

    /// Whether a filter leaves the type of its value, or of its elements, to the schema.
    private static func isUntyped(_ type: JSONValue?) -> Bool {
        guard case .string(let word)? = type else { return given(type) == nil }
        return FieldTypeWord(word) == .someList
    }

    /// A member that is there: clients write `null` for none.
    private static func given(_ member: JSONValue?) -> JSONValue? {
        if case .null? = member { nil } else { member }
    }

    /// Clients write the name of a record or user as a text and as a reference, whatever the field
    /// holds; a text is compared with the name (`RecordPredicate.meant`), whatever type it states.
    private static func fitted(_ raw: JSONValue, to field: SystemField) -> JSONValue {
        switch (raw, field.element) {
        case (.array(let elements), _): .array(elements.map { fitted($0, to: field) })
        case (.object(let object), .string): object["recordName"] ?? raw
        default: raw
        }
    }

    /// Whether a value is a text, or a list of texts.
    private static func isText(_ raw: JSONValue) -> Bool {
        switch raw {
        case .string: true
        case .array(let elements): !elements.isEmpty && elements.allSatisfy(isText)
        default: false
        }
    }

    private func element(of name: String, _ raw: JSONValue) -> SchemaFieldType.Element? {
        let known = definition?.fields[name]?.type.element ?? SystemField(named: name)?.element
        switch known {
        case .timestamp?, .bytes?, .double?: return known
        // Whoever has no integers of 64 bits writes them as texts, as they may be answered.
        case .int64? where Self.isText(raw): return known
        default: return nil
        }
    }
}
