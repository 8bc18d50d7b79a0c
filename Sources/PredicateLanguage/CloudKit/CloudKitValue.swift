import RelayModel

/// The values of CloudKit Web Services' `fieldValue`.
enum CloudKitValue {
    /// The member that says of which type a text is where CloudKit has no word for it: `UUID` or
    /// `OBJECTID`, also with `_LIST`.
    ///
    /// Clients know their own words only and go on beside others, so `type` stays what it was.
    static let databaseType = "databaseType"

    /// Reads `{"value": …, "type": …}`; without a type the JSON decides.
    static func read(_ reader: JSONReader) throws(JSONContractError) -> FieldValue {
        try reader.allowOnly(["value", "type", databaseType])
        let value = try reader.require("value", reader.value("value"))
        let path = reader.path(of: "value")
        if let word = try reader.string(databaseType) {
            guard let type = SchemaFieldType(word: word), type.element.isNamedByText else {
                throw reader.failure(
                    databaseType, "must be UUID or OBJECTID, for a list with _LIST")
            }
            return try FieldDictionary(.compared).value(value, as: type, path: path)
        }
        guard let word = try reader.string("type") else { return try derive(value, path) }
        switch FieldTypeWord(word) {
        case .someList?:
            guard case .array = value else { throw FieldDictionary.mismatch(word, path) }
            return try derive(value, path)
        // A field of another database's type is compared without one.
        case .stated(let type)? where type.element.isOfCloudKit:
            return try FieldDictionary(.compared).value(value, as: type, path: path)
        default:
            throw reader.failure(
                "type", "\"\(word)\" is unknown; allowed are \(FieldTypeWord.rule)")
        }
    }

    /// Without a type: an object is a reference or a place by its members, a number is a number.
    static func derive(
        _ value: JSONValue, _ path: String
    ) throws(JSONContractError) -> FieldValue {
        try FieldDictionary(.compared).inferred(value, path: path)
    }
}
