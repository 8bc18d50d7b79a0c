/// Names a role of a schema: one of CloudKit's own `_world`, `_icloud` and `_creator`, or another.
public struct RoleName: ValidatedIdentifier {
    /// What is allowed, for error messages; the schema's text cannot write a quotation mark.
    public static let rule =
        "a role of 1 to 255 UTF-8 bytes without control characters and quotation marks"

    /// The name as grants use it.
    public let rawValue: String

    /// Creates a name, or returns `nil` if `rawValue` is not one.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes),
            !rawValue.utf8.contains(UInt8(ascii: "\""))
        else { return nil }
        self.rawValue = rawValue
    }

    private init(_ known: String) {
        rawValue = known
    }

    /// Who created the record.
    public static let creator = RoleName("_creator")
    /// Everybody who is signed in.
    public static let icloud = RoleName("_icloud")
    /// Everybody.
    public static let world = RoleName("_world")
}
