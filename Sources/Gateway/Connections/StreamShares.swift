import RelayModel

/// How many requests of each container are open in a pool, and may be while others send too.
///
/// A connection's streams are worked one after the other, at the gateway and in the machine: what
/// one container has open beyond what is worked on only makes another's push late. So beside others
/// it has as many open as its answers stay quick with (``PushPace``); alone it has what the
/// connections hold.
struct StreamShares: Sendable {
    private struct Share {
        var pace: PushPace
        var seen: MonotonicInstant
    }

    private let most: Int
    private var shares: [ContainerKey: Share] = [:]

    /// Beside others no container has more than `most` requests open.
    init(most: Int) {
        self.most = most
    }

    /// Whether a further request of the container must wait, beside others, for the end of one that
    /// is open.
    func holds(_ container: ContainerKey) -> Bool {
        guard let pace = shares[container]?.pace else { return false }
        return pace.room == 0 && pace.open > 0
    }

    /// A request of the container is handed to a connection.
    mutating func begin(_ container: ContainerKey, at now: MonotonicInstant) {
        shares[container, default: Share(pace: PushPace(most: most), seen: now)].pace.begin()
        shares[container]?.seen = now
    }

    /// A request that was open has ended, or was given back by its connection; `latency` is zero
    /// if it says nothing about the gateway.
    mutating func end(_ container: ContainerKey, after latency: Duration) {
        shares[container]?.pace.end(after: latency)
    }

    /// Forgets those that had nothing open for long.
    mutating func sweep(at now: MonotonicInstant) {
        shares = shares.filter {
            $0.value.pace.open > 0
                || now.duration(since: $0.value.seen) <= Contention.remembrance
        }
    }
}
