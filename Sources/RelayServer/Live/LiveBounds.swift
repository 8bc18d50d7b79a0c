import Live
import RelayModel

/// What connected clients may take of the relay.
package struct LiveBounds: Sendable, Hashable {
    /// What the engine reads and keeps for them.
    var engine = LiveSettings()
    /// Connections, streams and polls at a time.
    var connections = 20_000
    /// Those of one container; `nil` for all but a sixty-fourth.
    var connectionsPerContainer: Int?
    /// Those of one user.
    var connectionsPerUser = 50
    /// Queries of one set.
    var queriesPerSet = 100
    /// Those who begin a connection or stream in a second.
    var hellosPerSecond = 1000
    /// The longest that telling all of them to go takes.
    var drain = Duration.seconds(10)
    /// The origins of the pages that may come in, in small letters; none for any.
    var allowedOrigins: Set<String> = []

    /// The connections of one container: however many clients one has, another one's get in.
    var containerConnections: Int {
        min(connections, connectionsPerContainer ?? Self.share(of: connections))
    }

    /// The same where the listener of clients takes `count` connections: live clients stay, and
    /// what is left of them is for those who ask and go, change sources above all.
    func besideRequests(_ count: Int) -> LiveBounds {
        var bounds = self
        bounds.connections = min(connections, count - max(1, count / 32))
        return bounds
    }

    /// What one is told for whom there is no room.
    func end(refusing reason: LiveRefusals.Reason) -> LiveEnd {
        switch reason {
        case .connectionsPerUser:
            LiveEnd(
                .tooMany,
                APIError(
                    .throttled, "a user has at most \(connectionsPerUser) connections at a time",
                    retryAfter: 5))
        case .connectionsPerContainer:
            LiveEnd(
                .notNow,
                APIError(
                    .tryAgainLater,
                    "a container has at most \(containerConnections) live connections",
                    retryAfter: 5))
        default:
            LiveEnd(
                .notNow,
                APIError(
                    .tryAgainLater, "the relay has \(connections) live connections",
                    retryAfter: 5))
        }
    }

    /// What one container has of what all share: all but a sixty-fourth.
    static func share(of count: Int) -> Int { count - count / 64 }

    /// Whether a page may come in, by the `Origin` of its browser; other programs send none.
    func admits(origin: String?) -> Bool {
        guard let origin, !allowedOrigins.isEmpty else { return true }
        return allowedOrigins.contains(origin.lowercased())
    }
}

/// Who began a connection in the second that is now.
///
/// So many are taken, so that the return of all after a start is no stampede; the others are told
/// seconds in which there is room for them. One container has all but a sixty-fourth of the
/// room.
struct LiveNewcomers: Sendable {
    /// The most seconds that anybody is told to stay away.
    static let mostPatience: Int64 = 60

    private var second = Int64.min
    private var count: Int64 = 0
    private var counts: [ContainerKey: Int64] = [:]

    /// Counts one of `container` who comes at `moment`.
    ///
    /// - Returns: The seconds to stay away, where `most` have come in this second.
    mutating func take(
        at moment: Timestamp, of container: ContainerKey, most: Int
    ) -> Int64? {
        let second = moment.milliseconds / 1000
        if self.second != second { (self.second, count, counts) = (second, 0, [:]) }
        let own = counts[container, default: 0]
        counts[container] = own + 1
        var late = own / Int64(LiveBounds.share(of: most))
        // Who is too many of their own container takes no other's place.
        if late == 0 {
            late = count / Int64(most)
            count += 1
        }
        return late == 0 ? nil : min(late, Self.mostPatience)
    }
}
