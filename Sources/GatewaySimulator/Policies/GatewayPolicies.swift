/// What happens to a stream that a sender opens beyond the limit.
public enum OverLimitPolicy: String, Sendable, Hashable, CaseIterable {
    /// The stream is served like any other; the violation is only recorded.
    case serves
    /// RST_STREAM with REFUSED_STREAM.
    case refuses
    /// GOAWAY for the connection, as APNs has been seen to send; the stream is not processed.
    case sendsGoAway
}

/// What an expired provider token does to its connection.
public enum ExpiredTokenPolicy: String, Sendable, Hashable, CaseIterable {
    /// Every later push on the connection is refused with the same reason, as APNs has been
    /// observed to do.
    case wedgesConnection
    /// Only the push itself is refused.
    case refusesPush
}

/// Whether pushes may come without `apns-push-type`.
public enum MissingPushTypePolicy: String, Sendable, Hashable, CaseIterable {
    /// They count as alerts.
    case accepted
    /// 400 `InvalidPushType`.
    case refused
}

/// What a refusal with status 403 does to the stream limit of its connection.
public enum RejectionPolicy: Sendable, Hashable {
    /// The limit stays.
    case keepsStreamLimit
    /// The limit shrinks to 1 until the next push is accepted, as APNs has been observed to do.
    case shrinksStreamLimit
    /// The limit shrinks in the same way, and the open streams are reset with REFUSED_STREAM.
    case shrinksStreamLimitAndRefusesOpenStreams
}

/// Where the gateway's certificates come from.
public enum CertificateSource: Sendable, Hashable {
    /// Made in memory at each start.
    case fresh
    /// Kept in this folder, and made anew when they are missing or valid for less than another day.
    case kept(folder: String)
}

/// How many RST_STREAM frames a sender may send, as a guard against rapid resets limits them.
public struct ResetGuard: Sendable, Hashable {
    /// The maximum number of frames within the window.
    public var maximumCount: Int
    /// The length of the window.
    public var window: Duration

    /// Creates a guard that allows up to `maximumCount` frames within any `window`.
    public init(maximumCount: Int, window: Duration) {
        self.maximumCount = maximumCount
        self.window = window
    }
}
