/// The name of a role in a schema: CloudKit's own `_world`, `_icloud` and `_creator`, or another.
public struct RoleName: ValidatedIdentifier {
    /// The rule for valid names, for error messages.
    ///
    /// The schema language cannot express a quotation mark in a name.
    public static let rule =
        "a role of 1 to 255 UTF-8 bytes without control characters and quotation marks"

    /// The name as grants use it.
    public let rawValue: String

    /// Creates a name, or returns `nil` if `rawValue` breaks the `rule`.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes),
            !rawValue.utf8.contains(UInt8(ascii: "\""))
        else { return nil }
        self.rawValue = rawValue
    }

    private init(_ known: String) {
        rawValue = known
    }

    /// The user who created the record.
    public static let creator = RoleName("_creator")
    /// Every signed-in user.
    public static let icloud = RoleName("_icloud")
    /// Everyone.
    public static let world = RoleName("_world")
}
