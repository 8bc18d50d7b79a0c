/// What the member `type` of CloudKit's field dictionary says (CloudKit Web Services Reference,
/// "Types").
///
/// Every reader of such dictionaries goes by it, so that what one understands all do.
public enum FieldTypeWord: Sendable, Hashable {
    /// The type of the value, or of each element of a list.
    case stated(SchemaFieldType)
    /// A list that does not say of what: `LIST`, as some clients write and older versions of the
    /// relay answered, and `UNKNOWN_LIST`, as the service answers an empty list of a field that no
    /// schema knows.
    case someList

    /// Reads `STRING`, `STRING_LIST`, `ASSETID`, `NUMBER_INT64`, `LIST` and so on, or returns
    /// `nil`.
    public init?(_ word: String) {
        switch word {
        case "LIST", "UNKNOWN_LIST": self = .someList
        default:
            guard let type = SchemaFieldType(word: SchemaFieldType.plain(word)) else { return nil }
            self = .stated(type)
        }
    }

    /// The words that may be written, for error messages.
    public static let rule =
        SchemaFieldType.Element.allCases.filter(\.isOfCloudKit).map(\.rawValue)
        .joined(separator: ", ") + ", ASSETID, each also with _LIST, and LIST"
}

extension SchemaFieldType.Element {
    /// The word by which answers call a value of this type: one of CloudKit's, whose clients know
    /// no others.
    public var answered: String {
        switch self {
        case .asset: "ASSETID"
        case .boolean: SchemaFieldType.Element.int64.rawValue
        case .uuid, .objectID, .map, .any: SchemaFieldType.Element.string.rawValue
        default: rawValue
        }
    }
}
