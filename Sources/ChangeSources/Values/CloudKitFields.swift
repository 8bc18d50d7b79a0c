import RelayModel

/// The fields of a record in the relay's notation, or in CloudKit's typed form
/// `{"value": …, "type": …}` (CloudKit Web Services Reference, "Record Field Dictionary").
enum CloudKitFields {
    /// Parses the fields.
    ///
    /// One with a CloudKit `type` that fits its `value` is read as typed.
    ///
    /// If every field is an object with a `value` and at most a `type`, all are read as CloudKit's,
    /// and a missing type is inferred from the value.
    static func read(_ reader: JSONReader) throws(JSONContractError) -> RecordFields {
        let members = reader.object.members
        let isAllTyped = !members.isEmpty && members.allSatisfy { isTyped($0.value) }
        var fields: RecordFields = [:]
        fields.reserveCapacity(members.count)
        for member in members {
            let path = reader.path(of: member.name)
            if case .object(let object) = member.value, isTyped(member.value),
                isAllTyped || word(object["type"], of: object["value"]) != nil
            {
                fields[member.name] = try value(
                    object["value"] ?? .null, typeName: object["type"], path: path)
            } else {
                fields[member.name] = try FieldValue(notation: member.value, path: path)
            }
        }
        return fields
    }

    private static func isTyped(_ json: JSONValue) -> Bool {
        guard case .object(let object) = json, object["value"] != nil else { return false }
        return object.members.count == (object["type"] == nil ? 1 : 2)
    }

    /// Returns CloudKit's type if it fits the value; an application's own dictionary may have a
    /// member `type` too.
    private static func word(_ type: JSONValue?, of value: JSONValue?) -> FieldTypeWord? {
        guard case .string(let name)? = type, let word = FieldTypeWord(name) else { return nil }
        switch word {
        case .someList: guard case .array? = value else { return nil }
        case .stated(let type): guard type.element.isOfCloudKit else { return nil }
        }
        return word
    }

    private static func value(
        _ json: JSONValue, typeName: JSONValue?, path: String
    ) throws(JSONContractError) -> FieldValue {
        if json == .null { return .null }
        let reader = FieldDictionary(.kept)
        guard let typeName, typeName != .null else {
            return try reader.inferred(json, path: "\(path).value")
        }
        switch word(typeName, of: json) {
        case .someList?: return try reader.inferred(json, path: "\(path).value")
        case .stated(let type)?: return try reader.value(json, as: type, path: "\(path).value")
        case nil:
            throw JSONContractError(
                path: "\(path).type", reason: "must be one of \(FieldTypeWord.rule)")
        }
    }
}
