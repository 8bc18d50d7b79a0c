/// Identifies one change of a source, so that a change that is posted twice counts once.
///
/// Keys of different kinds never collide: a source position is not a delivery ID, even if both read
/// `42`.
public struct DedupeKey: Sendable, Hashable {
    /// Where a key comes from, in order of preference.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The position of the change in the source's own log.
        case position
        /// The sender's ID of the delivery, stable over its retries (`webhook-id`).
        case delivery
        /// The values in the change that the source's mapping names.
        case expression
        /// The record itself, for sources that offer none of the others.
        ///
        /// The same digest as last time is a repetition within a short window; a different digest
        /// replaces the stored one.
        case content
    }

    /// Where the key comes from.
    public let kind: Kind
    /// The key, unique within its source and kind.
    public let text: String
    /// SHA-256 of the change as it was posted.
    ///
    /// The same key with another digest is a conflict, unless the key is of kind `content`.
    public let digest: [UInt8]
    /// How long the key holds, if that differs from the relay's window for keys of its kind.
    public let window: Duration?

    /// Creates a key; without `window`, it holds as long as the relay keeps keys of its kind.
    public init(kind: Kind, text: String, digest: [UInt8], window: Duration? = nil) {
        self.kind = kind
        self.text = text
        self.digest = digest
        self.window = window
    }
}
