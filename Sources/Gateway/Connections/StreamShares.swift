import RelayModel

/// The number of open requests of each container in a pool, and its limit while other containers
/// send too.
///
/// The gateway and the connection work on streams one after the other. Requests of one container
/// beyond those that are worked on only delay the pushes of others. So while others send, a
/// container may have as many requests open as still get quick answers (``PushPace``). A container
/// that is alone may fill the connections.
struct StreamShares: Sendable {
    private struct Share {
        var pace: PushPace
        var seen: MonotonicInstant
    }

    private let most: Int
    private var shares: [ContainerKey: Share] = [:]

    /// Creates shares by which no container has more than `most` requests open while others send.
    init(most: Int) {
        self.most = most
    }

    /// Returns whether a further request of the container must wait, while others send, for the end
    /// of an open one.
    func holds(_ container: ContainerKey) -> Bool {
        guard let pace = shares[container]?.pace else { return false }
        return pace.room == 0 && pace.open > 0
    }

    /// Notes that a request of the container is handed to a connection.
    mutating func begin(_ container: ContainerKey, at now: MonotonicInstant) {
        shares[container, default: Share(pace: PushPace(most: most), seen: now)].pace.begin()
        shares[container]?.seen = now
    }

    /// Notes that an open request has ended, or was given back by its connection.
    ///
    /// `latency` is zero if it says nothing about the gateway.
    mutating func end(_ container: ContainerKey, after latency: Duration) {
        shares[container]?.pace.end(after: latency)
    }

    /// Forgets containers that have had no open request for a long time.
    mutating func sweep(at now: MonotonicInstant) {
        shares = shares.filter {
            $0.value.pace.open > 0
                || now.duration(since: $0.value.seen) <= Contention.remembrance
        }
    }
}
