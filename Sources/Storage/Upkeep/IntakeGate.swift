package import RelayModel
import Synchronization

/// Lets changes in while no limit is reached, and counts the refusals.
///
/// The code that watches the limits sets them here, and appends only check them. A lock suffices,
/// because every access is short.
package final class IntakeGate: Sendable {
    private struct State {
        var reached: [IntakeBound: String] = [:]
        var shares: [ContainerKey: [IntakeBound: String]] = [:]
        var refusals: [IntakeBound: UInt64] = [:]
        var lacksRoom = false
    }

    private let state = Mutex(State())

    /// Creates a gate that lets everything in.
    package init() {}

    /// Sets the limits that are reached, each with an explanation for people, and the limits of
    /// which single containers have used up their share.
    package func set(
        _ reached: [IntakeBound: String], shares: [ContainerKey: [IntakeBound: String]] = [:]
    ) {
        state.withLock { state in
            state.reached = reached
            state.shares = shares
        }
    }

    /// The limits that are reached, with explanations.
    package var reached: [IntakeBound: String] { state.withLock { $0.reached } }

    /// The number of requests that each limit has refused since the store was opened.
    package var refusals: [IntakeBound: UInt64] { state.withLock { $0.refusals } }

    /// The containers that have used up their share of a limit, with explanations.
    package var shares: [ContainerKey: [IntakeBound: String]] { state.withLock { $0.shares } }

    /// Checks whether a request of a container may pass.
    ///
    /// - Throws: ``StorageError/bounded(_:reason:)`` if a limit is reached.
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

    /// Counts a refusal that was decided elsewhere.
    package func count(_ error: any Error) {
        switch error as? StorageError {
        case .noRoom:
            state.withLock { $0.lacksRoom = true }
            count(.disk)
        case .overloaded, .unavailable: count(.waiting)
        default: break
        }
    }

    /// Whether the latest refusal for lack of space has not been followed by a successful write.
    package var lacksRoom: Bool { state.withLock { $0.lacksRoom } }

    /// Notes that a write succeeded.
    package func noteRoom() {
        state.withLock { $0.lacksRoom = false }
    }

    /// Counts a request that a limit refused.
    package func count(_ bound: IntakeBound) {
        state.withLock { $0.refusals[bound, default: 0] += 1 }
    }
}
