import ArgumentParser
import RelayModel

/// A field in the notation of the command line: `name=value` or `name:type=value`.
struct FieldArgument: Sendable, Hashable {
    /// The types that can be given for a value.
    enum Kind: String, CaseIterable, Sendable {
        case string, int64, double, boolean, timestamp, reference, location, bytes, json
    }

    /// The names of the types, for messages.
    static let words = Kind.allCases.map(\.rawValue).joined(separator: ", ")

    let name: String
    let value: FieldValue

    /// Parses a field of the command line; an error becomes a `ValidationError`.
    static func read(_ text: String) throws -> FieldArgument {
        do {
            return try FieldArgument(text)
        } catch {
            throw ValidationError(error.description)
        }
    }

    /// Parses a field.
    ///
    /// - Throws: ``FieldArgumentError`` with what is wrong.
    init(_ text: String) throws(FieldArgumentError) {
        // By bytes: as characters, the equals sign and a combining mark at the start of the value
        // would be one.
        let bytes = Array(text.utf8)
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), equals > 0 else {
            throw FieldArgumentError("\"\(text)\" is not name=value or name:type=value")
        }
        let left = bytes[..<equals]
        let value = String(decoding: bytes[(equals + 1)...], as: UTF8.self)
        guard let colon = left.lastIndex(of: UInt8(ascii: ":")), colon > 0 else {
            name = String(decoding: left, as: UTF8.self)
            self.value = Self.guessed(value)
            return
        }
        name = String(decoding: left[..<colon], as: UTF8.self)
        let word = String(decoding: left[(colon + 1)...], as: UTF8.self)
        guard let kind = Kind(rawValue: word.lowercased()) else {
            throw FieldArgumentError(
                "\(name): \"\(word)\" is not a type; allowed are \(Self.words)")
        }
        self.value = try Self.read(value, as: kind, name: name)
    }

    /// Returns the fields by name.
    ///
    /// The last of several fields with one name counts.
    static func fields(_ arguments: [FieldArgument]) -> RecordFields {
        RecordFields(arguments.map { ($0.name, $0.value) }) { _, last in last }
    }

    private static func guessed(_ text: String) -> FieldValue {
        switch try? JSONValue(parsing: text) {
        case .bool(let flag)?: .bool(flag)
        case .integer(let number)?: .integer(number)
        case .number(let number)?: .double(number)
        default: .string(text)
        }
    }

    private static func read(
        _ text: String, as kind: Kind, name: String
    ) throws(FieldArgumentError) -> FieldValue {
        if kind == .json { return try json(text, name: name) }
        let value: FieldValue? =
            switch kind {
            case .string: .string(text)
            case .int64: Int64(text).map { .integer($0) }
            case .double: Double(text).flatMap { $0.isFinite ? .double($0) : nil }
            case .boolean: Bool(text).map { .bool($0) }
            case .timestamp: moment(text).map { .timestamp($0) }
            case .reference:
                RecordName(rawValue: text).map {
                    .reference(RecordReference(RecordID(recordName: $0)))
                }
            case .location: place(text).map { .location($0) }
            case .bytes: Base64.decode(text).map { .bytes($0) }
            case .json: nil
            }
        guard let value else {
            throw FieldArgumentError("\(name): \"\(text)\" is not \(kind.rule)")
        }
        return value
    }

    /// Parses a value in the notation of change sources.
    ///
    /// An error includes the place within the value.
    private static func json(
        _ text: String, name: String
    ) throws(FieldArgumentError) -> FieldValue {
        do {
            return try FieldValue(notation: JSONValue(parsing: text), path: name)
        } catch let error as JSONContractError {
            throw FieldArgumentError("\(error)")
        } catch {
            throw FieldArgumentError("\(name): \"\(text)\" is not \(Kind.json.rule)")
        }
    }

    /// Parses ISO 8601, or milliseconds since 1970 as in CloudKit's dictionaries.
    private static func moment(_ text: String) -> Timestamp? {
        if let moment = Timestamp(iso8601: text) { return moment }
        return Int64(text).map { Timestamp(milliseconds: $0) }
    }

    private static func place(_ text: String) -> Location? {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count == 2, let latitude = Double(parts[0]), let longitude = Double(parts[1])
        else { return nil }
        return Location(latitude: latitude, longitude: longitude)
    }
}

extension FieldArgument.Kind {
    /// The form of a value of this type, for messages.
    var rule: String {
        switch self {
        case .string: "a text"
        case .int64: "a whole number of 64 bits"
        case .double: "a number"
        case .boolean: "true or false"
        case .timestamp: "a moment, such as 2026-11-23T12:00:00Z, or in milliseconds since 1970"
        case .reference: "the name of a record"
        case .location: "a location, as latitude,longitude"
        case .bytes: "Base64"
        case .json: "a value in JSON"
        }
    }
}

/// The reason why a field is invalid.
struct FieldArgumentError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
