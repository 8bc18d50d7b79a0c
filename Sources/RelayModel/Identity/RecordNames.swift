/// The name of a record type.
public struct RecordType: ValidatedIdentifier {
    /// The rule for valid names, for error messages.
    public static let rule = "a record type of 1 to 255 UTF-8 bytes without control characters"

    /// The name as subscriptions and changes use it.
    public let rawValue: String

    /// Creates a name, or returns `nil` if `rawValue` breaks the `rule`.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}

/// The name of one record within its zone.
public struct RecordName: ValidatedIdentifier {
    /// The rule for valid names, for error messages.
    public static let rule = "a record name of 1 to 1024 UTF-8 bytes without control characters"

    /// The name.
    ///
    /// CloudKit's own names have at most 255 characters; the key columns of a source may need more.
    public let rawValue: String

    /// Creates a name, or returns `nil` if `rawValue` breaks the `rule`.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumRecordNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}
