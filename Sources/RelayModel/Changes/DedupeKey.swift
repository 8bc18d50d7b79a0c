/// Names one change of a source, so that the same change posted twice is one.
///
/// Keys of different kinds never collide: a source position is not a delivery ID, even if both read
/// `42`.
public struct DedupeKey: Sendable, Hashable {
    /// Where a key comes from, best first.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The place of the change in the source's own log.
        case position
        /// The sender's ID of the delivery, stable over its retries (`webhook-id`).
        case delivery
        /// The places in the change that the source's mapping names.
        case expression
        /// The record, for sources that have none of these: the same digest as last time is a
        /// repetition within a short window, and another one takes its place.
        case content
    }

    /// Where the key comes from.
    public let kind: Kind
    /// The key, unique within its source and kind.
    public let text: String
    /// SHA-256 of the change as it was posted: the same key with another digest is a conflict,
    /// unless it is of the kind `content`.
    public let digest: [UInt8]
    /// For how long the key holds, where it is not the relay's window for keys of its kind.
    public let window: Duration?

    /// Without `window` the key holds as long as the relay keeps keys of its kind.
    public init(kind: Kind, text: String, digest: [UInt8], window: Duration? = nil) {
        self.kind = kind
        self.text = text
        self.digest = digest
        self.window = window
    }
}
