import RelayModel

/// The values of CloudKit Web Services' `fieldValue`.
enum CloudKitValue {
    /// The types that a request may name (CloudKit Web Services, "Record Field Dictionary").
    enum Kind: String {
        case string = "STRING"
        case int64 = "INT64"
        case double = "DOUBLE"
        case timestamp = "TIMESTAMP"
        case bytes = "BYTES"
        case reference = "REFERENCE"
        case location = "LOCATION"
        case asset = "ASSET"

        /// CloudKit's types only; a field of another database's type is compared without one.
        init?(_ element: SchemaFieldType.Element) {
            self.init(rawValue: element.rawValue)
        }
    }

    /// Reads `{"value": …, "type": …}`; without a type the JSON decides.
    static func read(_ reader: JSONReader) throws(JSONContractError) -> FieldValue {
        try reader.allowOnly(["value", "type"])
        let value = try reader.require("value", reader.value("value"))
        let path = reader.path(of: "value")
        guard let word = try reader.string("type") else { return try derive(value, path) }
        switch FieldTypeWord(word) {
        case .someList?:
            guard case .array = value else { throw mismatch(word, path) }
            return try derive(value, path)
        case .stated(let type)?:
            guard let kind = Kind(type.element) else { throw unknown(word, reader) }
            guard type.isList else { return try read(value, as: kind, path) }
            guard case .array(let elements) = value else { throw mismatch(word, path) }
            try checkCount(elements.count, path)
            var values: [FieldValue] = []
            for (index, element) in elements.enumerated() {
                values.append(try read(element, as: kind, "\(path)[\(index)]"))
            }
            return .list(values)
        case nil: throw unknown(word, reader)
        }
    }

    private static func mismatch(_ word: String, _ path: String) -> JSONContractError {
        JSONContractError(path: path, reason: "Invalid value, expected type \(word).")
    }

    private static func unknown(_ word: String, _ reader: JSONReader) -> JSONContractError {
        reader.failure("type", "\"\(word)\" is unknown; allowed are \(FieldTypeWord.rule)")
    }

    private static func checkCount(_ count: Int, _ path: String) throws(JSONContractError) {
        guard count <= Limits.maximumPredicateListElements else {
            throw JSONContractError(
                path: path,
                reason: "a list has at most \(Limits.maximumPredicateListElements) elements")
        }
    }

    private static func read(
        _ value: JSONValue, as kind: Kind, _ path: String
    ) throws(JSONContractError) -> FieldValue {
        guard let result = try convert(value, to: kind, path) else {
            throw mismatch(kind.rawValue, path)
        }
        return result
    }

    private static func convert(
        _ value: JSONValue, to kind: Kind, _ path: String
    ) throws(JSONContractError) -> FieldValue? {
        switch (kind, value) {
        case (.string, .string(let text)): return .string(text)
        case (.int64, .integer(let number)): return .integer(number)
        // Some languages write a whole number as 3.0.
        case (.int64, .number(let number)): return Int64(exactly: number).map(FieldValue.integer)
        case (.int64, .bool(let flag)): return .integer(flag ? 1 : 0)
        case (.int64, .string(let text)): return Int64(text).map(FieldValue.integer)
        case (.double, .integer(let number)): return .double(Double(number))
        case (.double, .number(let number)): return .double(number)
        case (.double, .string(let text)):
            return Double(text).flatMap { $0.isFinite ? .double($0) : nil }
        case (.timestamp, .integer(let milliseconds)):
            return .timestamp(Timestamp(milliseconds: milliseconds))
        case (.timestamp, .number(let milliseconds)):
            return Int64(exactly: milliseconds).map { .timestamp(Timestamp(milliseconds: $0)) }
        case (.timestamp, .string(let text)):
            return Int64(text).map { .timestamp(Timestamp(milliseconds: $0)) }
        case (.bytes, .string(let text)): return Base64.decode(text).map(FieldValue.bytes)
        case (.reference, .object): return try reference(value, path)
        case (.location, .object(let object)): return location(object)
        case (.asset, _):
            throw JSONContractError(path: path, reason: "assets cannot be compared")
        default: return nil
        }
    }

    /// Without a type: an object is a reference or a place by its members, a number is a number.
    static func derive(
        _ value: JSONValue, _ path: String
    ) throws(JSONContractError) -> FieldValue {
        switch value {
        case .null: return .null
        case .bool(let flag): return .integer(flag ? 1 : 0)
        case .integer(let number): return .integer(number)
        case .number(let number): return .double(number)
        case .string(let text): return .string(text)
        case .array(let elements):
            try checkCount(elements.count, path)
            var values: [FieldValue] = []
            for (index, element) in elements.enumerated() {
                values.append(try derive(element, "\(path)[\(index)]"))
            }
            return .list(values)
        case .object(let object):
            if object["recordName"] != nil { return try reference(value, path) }
            if let place = location(object) { return place }
            throw JSONContractError(
                path: path,
                reason: "an object must be a reference {recordName} or a place"
                    + " {latitude, longitude}")
        }
    }

    private static func reference(
        _ value: JSONValue, _ path: String
    ) throws(JSONContractError) -> FieldValue {
        let reader = try JSONReader(value, path: path)
        let name: RecordName = try reader.require("recordName", try reader.identifier("recordName"))
        return .reference(
            RecordReference(RecordID(recordName: name, zoneID: try zoneID(of: reader))))
    }

    /// The zone of a reference: a dictionary or the bare name; without one the default zone.
    ///
    /// What else stands in the dictionary was never asked for, and what was saved is read again.
    private static func zoneID(of reader: JSONReader) throws(JSONContractError) -> ZoneID {
        if let name = reader.value("zoneID"), case .string = name {
            return try ZoneID(json: name, path: reader.path(of: "zoneID"))
        }
        guard let zone = try reader.reader("zoneID") else { return .default }
        let owner: UserID? = try zone.identifier(
            zone.value("ownerRecordName") == nil ? "ownerName" : "ownerRecordName")
        let name = try zone.string("zoneName") ?? ZoneID.defaultName
        guard let zoneID = ZoneID(zoneName: name, ownerRecordName: owner) else {
            throw zone.failure("zoneName", "not a zone name")
        }
        return zoneID
    }

    private static func location(_ object: JSONObject) -> FieldValue? {
        guard let latitude = object["latitude"]?.double, let longitude = object["longitude"]?.double
        else { return nil }
        return Location(latitude: latitude, longitude: longitude).map(FieldValue.location)
    }
}
