import RelayModel

/// A field in the form of CloudKit's answers: a value, and the type that says how to read it.
///
/// The service gives lists the type of their elements, even empty ones (`STRING_LIST`; measured on
/// 2026-09-09), and clients that decode strictly fail on any other word. So the value always fits
/// the type, whatever a database has sent.
struct AnsweredField {
    /// The type, as one of CloudKit's words.
    let type: String
    /// The value.
    let value: JSONValue

    /// Creates the form of a stored value; `wire` is the client's original form if it contains
    /// more, and `known` is the field's type in the schema.
    init(
        _ stored: FieldValue, wire: JSONValue?, known: SchemaFieldType?, numbers: AnsweredNumbers
    ) {
        let json = wire ?? stored.answered(numbers)
        let elements: [FieldValue]
        switch stored {
        case .list(let values): elements = values
        case .set(let values): elements = Array(values)
        default:
            let element = SchemaFieldType.Element(of: stored) ?? .string
            // A database writes whole doubles as integers. With the type of integers, the record
            // could not be saved back.
            let isWhole = element == .int64 && known == SchemaFieldType(.double)
            let word = isWhole ? Self.double : element.answered
            type = word
            value = word == Self.text ? Self.asText(json) : json
            return
        }
        let words = Set(
            elements.compactMap { SchemaFieldType.Element(of: $0)?.answered })
        let element = Self.element(of: words, known: known?.element.answered)
        type = element + "_LIST"
        let whole = Self.withoutNulls(json)
        value = element == Self.text ? Self.texts(whole) : whole
    }

    private static let text = SchemaFieldType.Element.string.answered
    private static let double = SchemaFieldType.Element.double.answered

    /// Returns the common type of list elements.
    ///
    /// An empty list has the type of the schema. Numbers are doubles if one of them is. Elements of
    /// different types become texts.
    private static func element(of words: Set<String>, known: String?) -> String {
        // An empty list of an unknown field gets the type that every client can read.
        guard let first = words.first else { return known ?? text }
        let numbers: Set = [SchemaFieldType.Element.int64.answered, double]
        if words.isSubset(of: numbers), words.count == 2 || known == double { return double }
        return words.count == 1 ? first : text
    }

    /// Removes nulls, which a database may have sent and CloudKit's lists do not have.
    private static func withoutNulls(_ json: JSONValue) -> JSONValue {
        guard case .array(let elements) = json else { return json }
        return .array(elements.filter { $0 != .null })
    }

    /// Turns all elements into texts, because CloudKit has no lists of lists or of objects.
    private static func texts(_ json: JSONValue) -> JSONValue {
        guard case .array(let elements) = json else { return json }
        return .array(elements.map(asText))
    }

    /// Returns a value as a text; a value without a type in CloudKit, such as a dictionary, becomes
    /// its JSON text.
    private static func asText(_ json: JSONValue) -> JSONValue {
        switch json {
        case .string, .null: json
        default: .string(json.text)
        }
    }
}
