import RelayModel

/// Which containers of a pool wait a moment, because the gateway could not take what was sent for
/// them: each for itself, though they share the connections.
///
/// What the gateway asks for beyond that is told to the caller, who can show it and end it.
struct ContainerPatience: Sendable {
    private var backOffs: [ContainerKey: PoolBackOff] = [:]
    private var held: [ContainerKey: [WaitingPush]] = [:]
    private(set) var heldCount = 0

    /// What must wait longer than that is the caller's to retry.
    static let longestHold = Duration.seconds(2)

    /// What becomes of a request now.
    enum Verdict: Sendable, Hashable {
        /// It goes.
        case go
        /// It waits a moment.
        case hold
        /// It waits longer than is worth holding it.
        case giveBack(PushCause)
    }

    /// What becomes of a request of `container` at `now`.
    func verdict(on container: ContainerKey, at now: MonotonicInstant) -> Verdict {
        guard !backOffs.isEmpty, let backOff = backOffs[container] else { return .go }
        let pause = backOff.remaining(at: now)
        if pause == .zero { return .go }
        return pause > Self.longestHold ? .giveBack(backOff.cause(pausing: pause)) : .hold
    }

    /// The gateway could not take a request of `container` at `now`; returns the pause, if it is a
    /// new one.
    mutating func fail(
        _ container: ContainerKey, cause: PushCause, at now: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) -> Duration? {
        var backOff = backOffs[container] ?? PoolBackOff()
        let isNews = backOff.fail(cause: cause, at: now, using: &generator)
        backOffs[container] = backOff
        return isNews ? backOff.remaining(at: now) : nil
    }

    /// The gateway accepted a request of `container` at `now`.
    mutating func succeed(_ container: ContainerKey, at now: MonotonicInstant) {
        guard !backOffs.isEmpty, backOffs[container]?.remaining(at: now) == .zero else { return }
        backOffs[container] = nil
    }

    /// Keeps a request until its container's wait is over.
    mutating func hold(_ waiting: WaitingPush) {
        held[waiting.request.container, default: []].append(waiting)
        heldCount += 1
    }

    /// Takes out what need not wait any more.
    mutating func release(at now: MonotonicInstant) -> [WaitingPush] {
        guard heldCount > 0 else { return [] }
        return held.keys.filter { verdict(on: $0, at: now) == .go }.flatMap { takeHeld($0) }
    }

    /// Forgets a container's wait, and takes out what was held for it.
    mutating func forget(_ container: ContainerKey) -> [WaitingPush] {
        backOffs[container] = nil
        return takeHeld(container)
    }

    /// Takes out everything that is held.
    mutating func removeAll() -> [WaitingPush] {
        held.keys.flatMap { takeHeld($0) }
    }

    private mutating func takeHeld(_ container: ContainerKey) -> [WaitingPush] {
        let waiting = held.removeValue(forKey: container) ?? []
        heldCount -= waiting.count
        return waiting
    }

    /// When something that is held may go.
    var wakesAt: MonotonicInstant? {
        held.keys.compactMap { backOffs[$0]?.resumesAt }.min()
    }
}
