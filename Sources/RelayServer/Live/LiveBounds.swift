import Live
import RelayModel

/// The limits on what connected clients may take of the relay.
package struct LiveBounds: Sendable, Hashable {
    /// The limits of the engine.
    var engine = LiveSettings()
    /// The number of connections, streams and polls at a time.
    var connections = 20_000
    /// The number for one container; `nil` for all but a sixty-fourth.
    var connectionsPerContainer: Int?
    /// The number for one user.
    var connectionsPerUser = 50
    /// The number of queries in a set.
    var queriesPerSet = 100
    /// The number of clients that may begin a connection or stream in one second.
    var hellosPerSecond = 1000
    /// The longest time for telling all clients to go.
    var drain = Duration.seconds(10)
    /// The origins of admitted pages, in lower case; an empty set admits all.
    var allowedOrigins: Set<String> = []

    /// The connections of one container; there is always room for clients of other containers.
    var containerConnections: Int {
        min(connections, connectionsPerContainer ?? Self.share(of: connections))
    }

    /// Returns the limits for a listener that takes `count` connections.
    ///
    /// Live clients stay connected, so some connections are left for short requests, above all
    /// those of change sources.
    func besideRequests(_ count: Int) -> LiveBounds {
        var bounds = self
        bounds.connections = min(connections, count - max(1, count / 32))
        return bounds
    }

    /// Returns the error for a client for whom there is no room.
    func end(refusing reason: LiveRefusals.Reason) -> LiveEnd {
        switch reason {
        case .connectionsPerUser:
            LiveEnd(
                .tooMany,
                APIError(
                    .throttled,
                    "a user may have at most \(connectionsPerUser) connections at a time",
                    retryAfter: 5))
        case .connectionsPerContainer:
            LiveEnd(
                .notNow,
                APIError(
                    .tryAgainLater,
                    "a container may have at most \(containerConnections) live connections",
                    retryAfter: 5))
        default:
            LiveEnd(
                .notNow,
                APIError(
                    .tryAgainLater,
                    "the relay already has \(connections) live connections, its maximum",
                    retryAfter: 5))
        }
    }

    /// Returns one container's share of a shared limit: all but a sixty-fourth.
    static func share(of count: Int) -> Int { count - count / 64 }

    /// Returns whether a page is admitted by the `Origin` of its browser; other programs send none.
    func admits(origin: String?) -> Bool {
        guard let origin, !allowedOrigins.isEmpty else { return true }
        return allowedOrigins.contains(origin.lowercased())
    }
}

/// Counts the clients that begin a connection in the current second.
///
/// The number is limited, so that the return of all clients after a start is no stampede. The
/// others are told to come back in a second that has room for them. One container may take all but
/// a sixty-fourth of the room.
struct LiveNewcomers: Sendable {
    /// The maximum number of seconds that a client is told to stay away.
    static let mostPatience: Int64 = 60

    private var second = Int64.min
    private var count: Int64 = 0
    private var counts: [ContainerKey: Int64] = [:]

    /// Counts a client of `container` that comes at `moment`.
    ///
    /// - Returns: The seconds to stay away, if `most` clients have come in this second; otherwise
    ///   `nil`.
    mutating func take(
        at moment: Timestamp, of container: ContainerKey, most: Int
    ) -> Int64? {
        let second = moment.milliseconds / 1000
        if self.second != second { (self.second, count, counts) = (second, 0, [:]) }
        let own = counts[container, default: 0]
        counts[container] = own + 1
        var late = own / Int64(LiveBounds.share(of: most))
        // A client beyond its container's share takes no room of other containers.
        if late == 0 {
            late = count / Int64(most)
            count += 1
        }
        return late == 0 ? nil : min(late, Self.mostPatience)
    }
}
