/// Names one subscription of one user within a database.
public struct SubscriptionID: ValidatedIdentifier {
    /// What is allowed, for error messages.
    public static let rule = "a subscription ID of 1 to 255 UTF-8 bytes without control characters"

    /// The name as the client wrote it.
    public let rawValue: String

    /// Creates an identifier, or returns `nil` if `rawValue` is not one.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}
