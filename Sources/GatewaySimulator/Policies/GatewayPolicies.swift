/// What happens to a stream that a sender opens beyond the limit.
public enum OverLimitPolicy: String, Sendable, Hashable, CaseIterable {
    /// It is served like any other; the violation is only recorded.
    case serves
    /// RST_STREAM with REFUSED_STREAM.
    case refuses
    /// GOAWAY for the connection, as APNs has been seen to send; the stream is not processed.
    case sendsGoAway
}

/// What an expired provider token does to its connection.
public enum ExpiredTokenPolicy: String, Sendable, Hashable, CaseIterable {
    /// Every later push on the connection is refused with the same reason, as APNs has been seen
    /// to.
    case wedgesConnection
    /// Only the push is refused.
    case refusesPush
}

/// Whether pushes may come without `apns-push-type`.
public enum MissingPushTypePolicy: String, Sendable, Hashable, CaseIterable {
    /// They count as alerts.
    case accepted
    /// 400 `InvalidPushType`.
    case refused
}

/// What APNs does to the stream limit of a connection that had a push refused with 403.
public enum RejectionPolicy: Sendable, Hashable {
    /// The limit stays.
    case keepsStreamLimit
    /// The limit shrinks to 1 until the next push is accepted, as APNs has been seen to do.
    case shrinksStreamLimit
    /// The same, and the streams that are open are reset with REFUSED_STREAM.
    case shrinksStreamLimitAndRefusesOpenStreams
}

/// Where the gateway's certificates come from.
public enum CertificateSource: Sendable, Hashable {
    /// Made at each start, in memory.
    case fresh
    /// Kept in this folder, and made anew when they are missing or have less than a day to live.
    case kept(folder: String)
}

/// How many RST_STREAM frames a sender may send, as a guard against rapid resets has it.
public struct ResetGuard: Sendable, Hashable {
    /// The number of frames within the window.
    public var maximumCount: Int
    /// The window.
    public var window: Duration

    /// Bears up to `maximumCount` frames in any `window`.
    public init(maximumCount: Int, window: Duration) {
        self.maximumCount = maximumCount
        self.window = window
    }
}
