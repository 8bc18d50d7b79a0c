/// A field that CloudKit provides for every record besides the record's own.
///
/// Each has several names: that of the native class (`creationDate`), that of CloudKit JS
/// (`createdTimestamp`), and that of the web service and the schema language (`___createTime`).
public enum SystemField: String, Sendable, Hashable, CaseIterable {
    /// The record itself, as a reference.
    case recordID
    /// The record's name, as a text.
    case recordName
    /// When the record was created.
    case creationDate
    /// When the record was last modified.
    case modificationDate
    /// The user who created the record, as a reference.
    case creator = "creatorUserRecordID"
    /// The user who last modified the record, as a reference.
    case modifier = "lastModifiedUserRecordID"
    /// The name of the user who created the record, as a text.
    case creatorName = "createdUserRecordName"
    /// The name of the user who last modified the record, as a text.
    case modifierName = "modifiedUserRecordName"

    /// All names of the field.
    public var names: [String] {
        switch self {
        case .recordID: ["recordID", "___recordID"]
        case .recordName: ["recordName"]
        case .creationDate: ["creationDate", "createdTimestamp", "___createTime"]
        case .modificationDate: ["modificationDate", "modifiedTimestamp", "___modTime"]
        case .creator: ["creatorUserRecordID", "___createdBy"]
        case .modifier: ["lastModifiedUserRecordID", "___modifiedBy"]
        case .creatorName: ["createdUserRecordName", "creatorUserRecordName"]
        case .modifierName: ["modifiedUserRecordName", "lastModifiedUserRecordName"]
        }
    }

    /// CloudKit's names without those of the web service that begin with underscores, for
    /// suggestions after typing errors.
    package static let typedNames = allCases.flatMap(\.names).filter { !$0.hasPrefix("_") }

    /// The type of the field's values.
    public var element: SchemaFieldType.Element {
        switch self {
        case .recordID, .creator, .modifier: .reference
        case .recordName, .creatorName, .modifierName: .string
        case .creationDate, .modificationDate: .timestamp
        }
    }

    /// The field with one of these names, or `nil` if no system field has it.
    public init?(named name: String) {
        guard let field = Self.byName[name] else { return nil }
        self = field
    }

    /// Returns whether clients must not write a field of this name, because readers would take its
    /// value for one that the relay provides.
    public static func isReserved(_ name: String) -> Bool {
        byName[name] != nil || name == "recordType" || name == "recordChangeTag"
    }

    /// All names of all system fields.
    package static let allNames: [String] = allCases.flatMap(\.names)

    private static let byName = Dictionary(
        uniqueKeysWithValues: allCases.flatMap { field in field.names.map { ($0, field) } })
}
