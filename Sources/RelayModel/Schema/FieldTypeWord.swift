/// The meaning of the member `type` in CloudKit's field dictionary (CloudKit Web Services
/// Reference, "Types").
///
/// Every reader of such dictionaries uses this type, so that all accept the same words.
public enum FieldTypeWord: Sendable, Hashable {
    /// The type of the value, or of each element of a list.
    case stated(SchemaFieldType)
    /// A list whose element type is not stated.
    ///
    /// Some clients write `LIST`, and older versions of the relay answered it. CloudKit answers
    /// `UNKNOWN_LIST` for an empty list in a field that no schema knows.
    case someList

    /// Reads `STRING`, `STRING_LIST`, `ASSETID`, `NUMBER_INT64`, `LIST` and so on, or returns `nil`
    /// for an unknown word.
    public init?(_ word: String) {
        switch word {
        case "LIST", "UNKNOWN_LIST": self = .someList
        default:
            guard let type = SchemaFieldType(word: SchemaFieldType.plain(word)) else { return nil }
            self = .stated(type)
        }
    }

    /// The allowed words, for error messages.
    public static let rule =
        SchemaFieldType.Element.allCases.filter(\.isOfCloudKit).map(\.rawValue)
        .joined(separator: ", ") + ", ASSETID, each also with _LIST, and LIST"
}

extension SchemaFieldType.Element {
    /// The word for this type in answers: one of CloudKit's, because its clients know no others.
    public var answered: String {
        switch self {
        case .asset: "ASSETID"
        case .boolean: SchemaFieldType.Element.int64.rawValue
        case .uuid, .objectID, .map, .any: SchemaFieldType.Element.string.rawValue
        default: rawValue
        }
    }
}
