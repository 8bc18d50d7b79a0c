import RelayModel

/// The containers of a pool that wait a moment, because the gateway could not take their requests.
///
/// Each waits separately, although they share the connections.
///
/// A longer time that the gateway asks for is reported to the caller, who can show it and end it.
struct ContainerPatience: Sendable {
    private var backOffs: [ContainerKey: PoolBackOff] = [:]
    private var held: [ContainerKey: [WaitingPush]] = [:]
    private(set) var heldCount = 0

    /// The longest wait here.
    ///
    /// If the wait is longer, the caller must retry.
    static let longestHold = Duration.seconds(2)

    /// The verdict on a request.
    enum Verdict: Sendable, Hashable {
        /// The request may go.
        case go
        /// The request waits a moment.
        case hold
        /// The wait is too long to hold the request.
        case giveBack(PushCause)
    }

    /// Returns the verdict on a request of `container` at `now`.
    func verdict(on container: ContainerKey, at now: MonotonicInstant) -> Verdict {
        guard !backOffs.isEmpty, let backOff = backOffs[container] else { return .go }
        let pause = backOff.remaining(at: now)
        if pause == .zero { return .go }
        return pause > Self.longestHold ? .giveBack(backOff.cause(pausing: pause)) : .hold
    }

    /// Notes that the gateway could not take a request of `container` at `now`.
    ///
    /// Returns the pause, if it is a new one.
    mutating func fail(
        _ container: ContainerKey, cause: PushCause, at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) -> Duration? {
        var backOff = backOffs[container] ?? PoolBackOff()
        let isNews = backOff.fail(cause: cause, at: now, using: &generator)
        backOffs[container] = backOff
        return isNews ? backOff.remaining(at: now) : nil
    }

    /// Notes that the gateway accepted a request of `container` at `now`.
    mutating func succeed(_ container: ContainerKey, at now: MonotonicInstant) {
        guard !backOffs.isEmpty, backOffs[container]?.remaining(at: now) == .zero else { return }
        backOffs[container] = nil
    }

    /// Holds a request until its container's wait is over.
    mutating func hold(_ waiting: WaitingPush) {
        held[waiting.request.container, default: []].append(waiting)
        heldCount += 1
    }

    /// Takes out the requests that need not wait any longer.
    mutating func release(at now: MonotonicInstant) -> [WaitingPush] {
        guard heldCount > 0 else { return [] }
        return held.keys.filter { verdict(on: $0, at: now) == .go }.flatMap { takeHeld($0) }
    }

    /// Forgets a container's wait, and takes out the requests that were held for it.
    mutating func forget(_ container: ContainerKey) -> [WaitingPush] {
        backOffs[container] = nil
        return takeHeld(container)
    }

    /// Takes out all requests that are held.
    mutating func removeAll() -> [WaitingPush] {
        held.keys.flatMap { takeHeld($0) }
    }

    private mutating func takeHeld(_ container: ContainerKey) -> [WaitingPush] {
        let waiting = held.removeValue(forKey: container) ?? []
        heldCount -= waiting.count
        return waiting
    }

    /// The time when a held request may go.
    var wakesAt: MonotonicInstant? {
        held.keys.compactMap { backOffs[$0]?.resumesAt }.min()
    }
}
