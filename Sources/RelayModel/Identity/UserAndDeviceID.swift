/// Names a user of a container, in CloudKit's words the `userRecordName`.
public struct UserID: ValidatedIdentifier {
    /// What is allowed, for error messages.
    public static let rule = "a user record name of 1 to 255 UTF-8 bytes without control characters"

    /// The name as the credential states it.
    public let rawValue: String

    /// Creates an identifier, or returns `nil` if `rawValue` is not one.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}

/// Names one installation of an application on one device of a user.
public struct DeviceID: ValidatedIdentifier {
    /// What is allowed, for error messages.
    public static let rule = "a device ID of 1 to 255 UTF-8 bytes without control characters"

    /// The name as the client or the relay chose it.
    public let rawValue: String

    /// Creates an identifier, or returns `nil` if `rawValue` is not one.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}
