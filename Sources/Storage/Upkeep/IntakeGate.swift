import Synchronization

/// What can make the relay refuse changes before it would lose any.
package enum IntakeBound: String, Sendable, Hashable, CaseIterable {
    /// Too many entries of the log are not settled.
    case logLag
    /// Too many deliveries wait to be tried again.
    case retries
    /// Too many subscriptions wait in ranges of huge fan-outs.
    case ranges
    /// The process uses too much memory.
    case memory
    /// The write-ahead log is too large: somebody has been reading for long.
    case wal
    /// The disk has less room than its reserve, or none.
    case disk
    /// Too much waits to be written.
    case waiting
}

/// Lets changes in while no bound is reached, and counts those that it refused.
///
/// Whoever watches the bounds sets them; appends only look. A lock: all is short.
package final class IntakeGate: Sendable {
    private struct State {
        var reached: [IntakeBound: String] = [:]
        var refusals: [IntakeBound: UInt64] = [:]
    }

    private let state = Mutex(State())

    /// Sets the bounds that are reached, each with what people should know.
    package func set(_ reached: [IntakeBound: String]) {
        state.withLock { $0.reached = reached }
    }

    /// The bounds that are reached.
    package var reached: [IntakeBound: String] { state.withLock { $0.reached } }

    /// How many requests each bound has refused since the store was opened.
    package var refusals: [IntakeBound: UInt64] { state.withLock { $0.refusals } }

    /// Lets a request pass.
    ///
    /// - Throws: ``StorageError/bounded(_:reason:)``.
    func check() throws(StorageError) {
        let refusal = state.withLock { state -> StorageError? in
            let first = state.reached.min { $0.key.rawValue < $1.key.rawValue }
            guard let (bound, reason) = first else { return nil }
            state.refusals[bound, default: 0] += 1
            return .bounded(bound, reason: reason)
        }
        if let refusal { throw refusal }
    }

    /// Counts a refusal that somebody else decided.
    func count(_ error: any Error) {
        switch error as? StorageError {
        case .noRoom: count(.disk)
        case .overloaded: count(.waiting)
        default: break
        }
    }

    private func count(_ bound: IntakeBound) {
        state.withLock { $0.refusals[bound, default: 0] += 1 }
    }
}
