import Live
import RelayModel

/// What connected clients may take of the relay.
package struct LiveBounds: Sendable, Hashable {
    /// What the engine reads and keeps for them.
    var engine = LiveSettings()
    /// Connections, streams and polls at a time.
    var connections = 20_000
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

    /// Whether a page may come in, by the `Origin` of its browser; other programs send none.
    func admits(origin: String?) -> Bool {
        guard let origin, !allowedOrigins.isEmpty else { return true }
        return allowedOrigins.contains(origin.lowercased())
    }
}

/// Who began a connection in the second that is now.
///
/// Their number is bounded, so that the return of all after a start is no stampede; the others are
/// told seconds in which there is room for them.
struct LiveNewcomers: Sendable {
    /// The most seconds that anybody is told to stay away.
    static let mostPatience: Int64 = 60

    private var second = Int64.min
    private var count: Int64 = 0

    /// Counts one who comes at `moment`.
    ///
    /// - Returns: The seconds to stay away, where `most` have come in this second.
    mutating func take(at moment: Timestamp, most: Int) -> Int64? {
        let second = moment.milliseconds / 1000
        if self.second != second { (self.second, count) = (second, 0) }
        let late = count / Int64(most)
        count += 1
        return late == 0 ? nil : min(late, Self.mostPatience)
    }
}
