/// What CloudKit knows of every record beside its own fields.
///
/// Each has several names: the native class's (`creationDate`), those of CloudKit JS
/// (`createdTimestamp`), and those of the web service and the schema language (`___createTime`).
public enum SystemField: String, Sendable, Hashable, CaseIterable {
    /// Which record it is, as a reference.
    case recordID
    /// Its name, as a text.
    case recordName
    /// When it was created.
    case creationDate
    /// When it was changed last.
    case modificationDate
    /// Who created it, as a reference to a user.
    case creator = "creatorUserRecordID"
    /// Who changed it last, as a reference to a user.
    case modifier = "lastModifiedUserRecordID"
    /// The name of who created it, as a text.
    case creatorName = "createdUserRecordName"
    /// The name of who changed it last, as a text.
    case modifierName = "modifiedUserRecordName"

    /// Everything that it is called.
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

    /// The names that are typed: those of CloudKit.
    package static let typedNames = allCases.flatMap(\.names).filter { !$0.hasPrefix("_") }

    /// What its values are.
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

    /// Whether clients may not write a field of this name, because readers would take what it holds
    /// for what the relay knows.
    public static func isReserved(_ name: String) -> Bool {
        byName[name] != nil || name == "recordType" || name == "recordChangeTag"
    }

    /// Every name of every one.
    package static let allNames: [String] = allCases.flatMap(\.names)

    private static let byName = Dictionary(
        uniqueKeysWithValues: allCases.flatMap { field in field.names.map { ($0, field) } })
}
