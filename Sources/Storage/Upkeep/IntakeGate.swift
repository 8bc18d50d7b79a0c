package import RelayModel
import Synchronization

/// Lets changes in while no bound is reached, and counts those that it refused.
///
/// Whoever watches the bounds sets them; appends only look. A lock: all is short.
package final class IntakeGate: Sendable {
    private struct State {
        var reached: [IntakeBound: String] = [:]
        var shares: [ContainerKey: [IntakeBound: String]] = [:]
        var refusals: [IntakeBound: UInt64] = [:]
        var lacksRoom = false
    }

    private let state = Mutex(State())

    /// Lets everything in.
    package init() {}

    /// Sets the bounds that are reached, each with what people should know, and those of which a
    /// container has used up what is left to it beside the others.
    package func set(
        _ reached: [IntakeBound: String], shares: [ContainerKey: [IntakeBound: String]] = [:]
    ) {
        state.withLock { state in
            state.reached = reached
            state.shares = shares
        }
    }

    /// The bounds that are reached.
    package var reached: [IntakeBound: String] { state.withLock { $0.reached } }

    /// How many requests each bound has refused since the store was opened.
    package var refusals: [IntakeBound: UInt64] { state.withLock { $0.refusals } }

    /// The containers that have used up what is left to them of a bound beside the others.
    package var shares: [ContainerKey: [IntakeBound: String]] { state.withLock { $0.shares } }

    /// Lets a request of a container pass.
    ///
    /// - Throws: ``StorageError/bounded(_:reason:)``.
    package func check(_ container: ContainerKey) throws(StorageError) {
        let refusal = state.withLock { state -> StorageError? in
            let reached = state.reached.merging(state.shares[container] ?? [:]) { all, _ in all }
            let first = reached.min { $0.key.rawValue < $1.key.rawValue }
            guard let (bound, reason) = first else { return nil }
            state.refusals[bound, default: 0] += 1
            return .bounded(bound, reason: reason)
        }
        if let refusal { throw refusal }
    }

    /// Counts a refusal that somebody else decided.
    package func count(_ error: any Error) {
        switch error as? StorageError {
        case .noRoom:
            state.withLock { $0.lacksRoom = true }
            count(.disk)
        case .overloaded, .unavailable: count(.waiting)
        default: break
        }
    }

    /// Whether the last that was refused for want of room has not been followed by one that fitted.
    package var lacksRoom: Bool { state.withLock { $0.lacksRoom } }

    /// Notes that something was written.
    package func noteRoom() {
        state.withLock { $0.lacksRoom = false }
    }

    /// Counts a request that a bound refused.
    package func count(_ bound: IntakeBound) {
        state.withLock { $0.refusals[bound, default: 0] += 1 }
    }
}
