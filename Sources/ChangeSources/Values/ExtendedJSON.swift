import RelayModel

/// MongoDB's extended JSON v2, canonical and relaxed.
enum ExtendedJSON {
    /// Returns the fields of a document.
    static func fields(_ object: JSONObject) -> RecordFields {
        var fields: RecordFields = [:]
        fields.reserveCapacity(object.members.count)
        for member in object.members { fields[member.name] = value(member.value) }
        return fields
    }

    /// Returns a value.
    ///
    /// An object that only resembles a typed one is a plain object.
    static func value(_ json: JSONValue) -> FieldValue {
        switch json {
        case .array(let elements): return .list(elements.map(value))
        case .object(let object): return tagged(object) ?? .map(fields(object))
        default: return FieldValue(plain: json)
        }
    }

    private static func tagged(_ object: JSONObject) -> FieldValue? {
        guard let first = object.members.first, first.name.hasPrefix("$") else { return nil }
        switch (first.name, first.value, object.members.count) {
        case ("$oid", .string(let text), 1):
            return Hexadecimal.decode(text).flatMap { $0.count == 12 ? .objectID($0) : nil }
        case ("$numberLong", .string(let text), 1), ("$numberInt", .string(let text), 1):
            return Int64(text).map(FieldValue.integer)
        case ("$numberDouble", .string(let text), 1):
            // A record cannot hold infinities and NaN.
            return FieldValue(numberText: text).map { number in
                if case .integer(let whole) = number { .double(Double(whole)) } else { number }
            } ?? .null
        case ("$numberDecimal", .string(let text), 1):
            return FieldValue(numberText: text) ?? .null
        case ("$date", let value, 1): return date(value)
        case ("$timestamp", .object(let parts), 1):
            guard case .integer(let seconds)? = parts["t"] else { return nil }
            return Timestamp(seconds: seconds).plausible.map(FieldValue.timestamp)
        case ("$binary", .object(let parts), 1):
            guard case .string(let text)? = parts["base64"] else { return nil }
            return bytes(text, subType: parts["subType"])
        case ("$uuid", .string(let text), 1): return UUIDBytes(text).map(FieldValue.uuid)
        case ("$symbol", .string(let text), 1), ("$code", .string(let text), 1):
            return .string(text)
        case ("$undefined", _, 1), ("$minKey", _, 1), ("$maxKey", _, 1): return .null
        default: return nil
        }
    }

    private static func date(_ json: JSONValue) -> FieldValue? {
        switch json {
        case .string(let text): Timestamp(iso8601: text).map(FieldValue.timestamp)
        case .integer(let count): Timestamp(milliseconds: count).plausible.map(FieldValue.timestamp)
        case .object(let object):
            if case .string(let text)? = object["$numberLong"], let count = Int64(text) {
                Timestamp(milliseconds: count).plausible.map(FieldValue.timestamp)
            } else {
                nil
            }
        default: nil
        }
    }

    private static func bytes(_ text: String, subType: JSONValue?) -> FieldValue? {
        guard let bytes = Base64.decode(text) else { return nil }
        if subType == "04", let uuid = UUIDBytes(bytes: bytes) { return .uuid(uuid) }
        return .bytes(bytes)
    }
}
