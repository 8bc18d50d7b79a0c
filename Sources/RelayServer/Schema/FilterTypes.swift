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
            value["type"] == nil, let raw = value["value"],
            case .string(let name)? = filter["fieldName"] ?? filter["systemFieldName"],
            let element = element(of: name)
        else { return json }
        if case .array = raw {
            value["type"] = .string("\(element.rawValue)_LIST")
        } else {
            value["type"] = .string(element.rawValue)
        }
        filter["fieldValue"] = .object(value)
        return .object(filter)
    }

    private func element(of name: String) -> SchemaFieldType.Element? {
        let known = definition?.fields[name]?.type.element
        if known == nil, Self.moments.contains(name) { return .timestamp }
        switch known {
        case .timestamp?, .bytes?, .double?: return known
        default: return nil
        }
    }

    private static let moments: Set<String> = [
        "creationDate", "createdTimestamp", "___createTime", "modificationDate",
        "modifiedTimestamp", "___modTime",
    ]
}
