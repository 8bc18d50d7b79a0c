import RelayModel

/// A field as CloudKit's service answers it: a value, and the type that says how to read it.
///
/// The service answers lists by the type of their elements, empty ones too (`STRING_LIST`; measured
/// on 2026-09-09), and clients that decode strictly end at any other word. So the value always fits
/// the word, whatever a database has sent.
struct AnsweredField {
    /// One of CloudKit's words.
    let type: String
    /// The value.
    let value: JSONValue

    /// The form of a stored value; `wire` is what a client wrote of it where that says more, and
    /// `known` what the schema says of the field.
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
            // A database writes the whole ones among doubles as integers; as those the record could
            // not be saved back.
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

    /// What the elements have in common: their type; that of the schema where there are none;
    /// numbers are doubles where one is, and elements that nothing unites are texts.
    private static func element(of words: Set<String>, known: String?) -> String {
        // An empty list of a field that nobody knows is the one that every client can read.
        guard let first = words.first else { return known ?? text }
        let numbers: Set = [SchemaFieldType.Element.int64.answered, double]
        if words.isSubset(of: numbers), words.count == 2 || known == double { return double }
        return words.count == 1 ? first : text
    }

    /// A list without what a database has put into it and CloudKit's lists do not have.
    private static func withoutNulls(_ json: JSONValue) -> JSONValue {
        guard case .array(let elements) = json else { return json }
        return .array(elements.filter { $0 != .null })
    }

    /// A list in which everything is a text, as CloudKit has no list of lists or of objects.
    private static func texts(_ json: JSONValue) -> JSONValue {
        guard case .array(let elements) = json else { return json }
        return .array(elements.map(asText))
    }

    /// A text: what CloudKit has no type for, as a dictionary, is its JSON.
    private static func asText(_ json: JSONValue) -> JSONValue {
        switch json {
        case .string, .null: json
        default: .string(json.text)
        }
    }
}
