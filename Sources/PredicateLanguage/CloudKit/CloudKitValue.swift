import RelayModel

/// The values of CloudKit Web Services' `fieldValue`.
enum CloudKitValue {
    /// Reads `{"value": …, "type": …}`; without a type the JSON decides.
    static func read(_ reader: JSONReader) throws(JSONContractError) -> FieldValue {
        try reader.allowOnly(["value", "type"])
        let value = try reader.require("value", reader.value("value"))
        let path = reader.path(of: "value")
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
