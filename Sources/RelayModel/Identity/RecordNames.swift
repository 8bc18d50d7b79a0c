/// Names the type of a record.
public struct RecordType: ValidatedIdentifier {
    /// What is allowed, for error messages.
    public static let rule = "a record type of 1 to 255 UTF-8 bytes without control characters"

    /// The name as subscriptions and changes use it.
    public let rawValue: String

    /// Creates an identifier, or returns `nil` if `rawValue` is not one.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}

/// Names one record within its zone.
public struct RecordName: ValidatedIdentifier {
    /// What is allowed, for error messages.
    public static let rule = "a record name of 1 to 1024 UTF-8 bytes without control characters"

    /// The name; CloudKit's own are at most 255 characters long, a source's key columns may need
    /// more.
    public let rawValue: String

    /// Creates an identifier, or returns `nil` if `rawValue` is not one.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumRecordNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}
