import RelayModel

/// The type of a column, where JSON alone cannot express it.
package enum ColumnType: String, Sendable, Hashable, CaseIterable {
    /// A date as text (RFC 3339, or as databases write it).
    case timestamp
    /// A date as seconds since 1970, whole or with a fraction.
    case seconds
    /// A date as milliseconds since 1970.
    case milliseconds
    /// A date as microseconds since 1970.
    case microseconds
    /// A date as nanoseconds since 1970.
    case nanoseconds
    /// A date as days since 1970.
    case days
    /// A location: `{"latitude", "longitude"}`, `{"lat", "lng"}`, GeoJSON's point, or a text
    /// `lat,lng` or `POINT(lng lat)`.
    case location
    /// A reference: the name of a record in the same zone.
    case reference
    /// Bytes in base64, or in hexadecimal digits after `\x` (PostgreSQL).
    case bytes
    /// A UUID.
    case uuid
    /// A MongoDB object ID in hexadecimal digits.
    case objectID
    /// An integer, including one written as text to keep its digits.
    case integer
    /// A number, including one written as text.
    case number
    /// A Boolean, including one written as 0 or 1, or as text.
    case boolean
    /// A text, including that of a number.
    case text
    /// A list whose order is irrelevant.
    case set
    /// A text that holds JSON.
    case json

    init(json: JSONValue, path: String) throws(JSONContractError) {
        guard case .string(let word) = json, let type = ColumnType(rawValue: word) else {
            let words = Self.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
            throw JSONContractError(path: path, reason: "must be one of \(words)")
        }
        self = type
    }

    /// Returns `value` converted to this type, or `nil` if it does not fit.
    ///
    /// A null value stays null, and a value that already has the type stays as it is.
    func convert(_ value: FieldValue, zoneID: ZoneID) -> FieldValue? {
        if value.isNull { return value }
        switch self {
        case .timestamp, .seconds, .milliseconds, .microseconds, .nanoseconds, .days:
            return moment(value)?.plausible.map(FieldValue.timestamp)
        case .location: return LocationText.location(value).map(FieldValue.location)
        case .reference: return reference(value, zoneID: zoneID)
        case .bytes: return bytes(value)
        case .uuid: return uuid(value)
        case .objectID: return objectID(value)
        case .integer, .number, .boolean: return scalar(value)
        case .text: return value.nameText.map(FieldValue.string)
        case .set: return set(value)
        case .json: return parsed(value)
        }
    }

    private func moment(_ value: FieldValue) -> Timestamp? {
        switch (value, self) {
        case (.timestamp(let moment), _): return moment
        case (.string(let text), .timestamp): return Timestamp(iso8601: text)
        case (.double(let number), .seconds): return Timestamp(secondsSince1970: number)
        case (.double(let number), .milliseconds):
            return Timestamp(secondsSince1970: number / 1000)
        case (.string(let text), _): return Int64(text).flatMap(moment(counting:))
        case (.integer(let count), _): return moment(counting: count)
        default: return nil
        }
    }

    private func moment(counting count: Int64) -> Timestamp? {
        switch self {
        case .seconds: Timestamp(seconds: count)
        case .milliseconds: Timestamp(milliseconds: count)
        case .microseconds: Timestamp(count: count, perSecond: 1_000_000)
        case .nanoseconds: Timestamp(count: count, perSecond: 1_000_000_000)
        case .days:
            (-1_000_000...3_000_000).contains(count) ? Timestamp(seconds: count * 86_400) : nil
        default: nil
        }
    }

    private func reference(_ value: FieldValue, zoneID: ZoneID) -> FieldValue? {
        if case .reference = value { return value }
        return value.nameText.flatMap(RecordName.init(rawValue:)).map {
            .reference(RecordReference(RecordID(recordName: $0, zoneID: zoneID)))
        }
    }

    private func bytes(_ value: FieldValue) -> FieldValue? {
        switch value {
        case .bytes: value
        case .string(let text) where text.hasPrefix("\\x"):
            Hexadecimal.decode(text.dropFirst(2)).map(FieldValue.bytes)
        case .string(let text): Base64.decode(text).map(FieldValue.bytes)
        default: nil
        }
    }

    private func uuid(_ value: FieldValue) -> FieldValue? {
        switch value {
        case .uuid: value
        case .string(let text): UUIDBytes(text).map(FieldValue.uuid)
        default: nil
        }
    }

    private func objectID(_ value: FieldValue) -> FieldValue? {
        switch value {
        case .objectID: value
        case .string(let text):
            Hexadecimal.decode(text).flatMap { $0.count == 12 ? .objectID($0) : nil }
        default: nil
        }
    }

    private func scalar(_ value: FieldValue) -> FieldValue? {
        switch (self, value) {
        case (.integer, .integer), (.number, .integer), (.number, .double), (.boolean, .bool):
            value
        case (.integer, .double(let number)): Int64(exactly: number).map(FieldValue.integer)
        case (.integer, .string(let text)): Int64(text).map(FieldValue.integer)
        case (.number, .string(let text)): FieldValue(numberText: text)
        case (.boolean, .integer(0)): .bool(false)
        case (.boolean, .integer(1)): .bool(true)
        case (.boolean, .string(let text)):
            switch text.lowercased() {
            case "t", "true", "1", "yes": .bool(true)
            case "f", "false", "0", "no": .bool(false)
            default: nil
            }
        default: nil
        }
    }

    private func set(_ value: FieldValue) -> FieldValue? {
        switch value {
        case .set: value
        case .list(let elements): .set(Set(elements))
        default: nil
        }
    }

    private func parsed(_ value: FieldValue) -> FieldValue? {
        guard case .string(let text) = value else { return value }
        return (try? JSONValue(parsing: text)).map(FieldValue.init(plain:))
    }
}
