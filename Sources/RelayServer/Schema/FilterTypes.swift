import RelayModel

/// Completes `filterBy` with the types that a client left out.
///
/// The schema decides then (CloudKit Web Services Reference), because in JSON milliseconds look
/// like a number, and bytes like a text.
struct FilterTypes {
    /// The record type, if it is known.
    let definition: RecordTypeDefinition?

    /// Returns the filters, completed with the types that JSON does not show.
    func completed(_ filterBy: JSONValue) -> JSONValue {
        switch filterBy {
        case .array(let filters): .array(filters.map(filter))
        case .object: filter(filterBy)
        default: filterBy
        }
    }

    /// Returns a query for a subscription or for records, with its filters completed.
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

    /// Returns the type of a field that CloudKit has no word for, if the filter's value can have
    /// it.
    ///
    /// The values of such a field are answered as texts, and come back as texts.
    private func databaseType(of name: String, _ value: JSONObject) -> SchemaFieldType? {
        guard let element = definition?.fields[name]?.type.element, element.isNamedByText,
            let raw = value["value"], Self.isText(raw), Self.isOfTexts(value["type"])
        else { return nil }
        let isList = if case .array = raw { true } else { false }
        let type = SchemaFieldType(element, isList: isList)
        // A value that is not complete, such as a beginning, stays a text; the check will say why.
        let read = try? FieldDictionary(.compared).value(raw, as: type, path: "")
        return read == nil ? nil : type
    }

    /// Returns whether a filter states that its value is a text, or states no type.
    private static func isOfTexts(_ type: JSONValue?) -> Bool {
        guard case .string(let word)? = type, case .stated(let stated)? = FieldTypeWord(word) else {
            return isUntyped(type)
        }
        return stated.element == .string
    }

    /// Returns whether a filter leaves the type of its value, or of its elements, to the schema.
    private static func isUntyped(_ type: JSONValue?) -> Bool {
        guard case .string(let word)? = type else { return given(type) == nil }
        return FieldTypeWord(word) == .someList
    }

    /// Returns a member if it is present; clients write `null` for none.
    private static func given(_ member: JSONValue?) -> JSONValue? {
        if case .null? = member { nil } else { member }
    }

    /// Adapts a value to a system field.
    ///
    /// Clients write the name of a record or user as a text or as a reference, whatever the field
    /// holds. A text is compared with the name (`RecordPredicate.meant`), whatever type it states.
    private static func fitted(_ raw: JSONValue, to field: SystemField) -> JSONValue {
        switch (raw, field.element) {
        case (.array(let elements), _): .array(elements.map { fitted($0, to: field) })
        case (.object(let object), .string): object["recordName"] ?? raw
        default: raw
        }
    }

    /// Returns whether a value is a text, or a list of texts.
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
        // A client without 64-bit integers writes them as texts, as answers may do.
        case .int64? where Self.isText(raw): return known
        default: return nil
        }
    }
}
