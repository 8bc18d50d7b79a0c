/// The ID of one subscription of one user within a database.
public struct SubscriptionID: ValidatedIdentifier {
    /// The rule for valid IDs, for error messages.
    public static let rule = "a subscription ID of 1 to 255 UTF-8 bytes without control characters"

    /// The name as the client wrote it.
    public let rawValue: String

    /// Creates an ID, or returns `nil` if `rawValue` breaks the `rule`.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}
