import RelayModel

/// Reads the values of CloudKit Web Services' `fieldValue`.
enum CloudKitValue {
    /// The member that gives the type of a text that represents a type which CloudKit lacks: `UUID`
    /// or `OBJECTID`, also with `_LIST`.
    ///
    /// CloudKit's clients know only its own types and ignore other members, so `type` keeps its
    /// value.
    static let databaseType = "databaseType"

    /// Reads `{"value": …, "type": …}`.
    ///
    /// Without a type, the JSON determines it.
    static func read(_ reader: JSONReader) throws(JSONContractError) -> FieldValue {
        try reader.allowOnly(["value", "type", databaseType])
        let value = try reader.require("value", reader.value("value"))
        let path = reader.path(of: "value")
        if let word = try reader.string(databaseType) {
            guard let type = SchemaFieldType(word: word), type.element.isNamedByText else {
                throw reader.failure(
                    databaseType, "must be UUID, OBJECTID, UUID_LIST or OBJECTID_LIST")
            }
            return try FieldDictionary(.compared).value(value, as: type, path: path)
        }
        guard let word = try reader.string("type") else { return try derive(value, path) }
        switch FieldTypeWord(word) {
        case .someList?:
            guard case .array = value else { throw FieldDictionary.mismatch(word, path) }
            return try derive(value, path)
        // Only CloudKit's types can be given here. Values of other types are given without `type`.
        case .stated(let type)? where type.element.isOfCloudKit:
            return try FieldDictionary(.compared).value(value, as: type, path: path)
        default:
            throw reader.failure(
                "type", "\"\(word)\" is unknown; allowed are \(FieldTypeWord.rule)")
        }
    }

    /// Reads a value without a type: the members of an object show a reference or a location, and a
    /// number is a number.
    static func derive(
        _ value: JSONValue, _ path: String
    ) throws(JSONContractError) -> FieldValue {
        try FieldDictionary(.compared).inferred(value, path: path)
    }
}
