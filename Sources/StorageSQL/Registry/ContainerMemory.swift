import RelayModel
import Storage
import Synchronization

/// A cache of what was read for each container.
///
/// Only this process writes the containers while it owns the store. If the ownership is in doubt,
/// the cache is not used. A value that was read before the latest change of any container is not
/// cached.
final class ContainerMemory<Value: Sendable>: Sendable {
    private struct State {
        var values: [ContainerKey: Value] = [:]
        /// The number of changes so far.
        var turn: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Returns the cached value of `container`, or what `read` finds.
    ///
    /// A missing value is not cached, so that unknown names take no memory.
    func value(
        of container: ContainerKey, inDoubt: Bool = false, orRead read: () async throws -> Value?
    ) async throws -> Value? {
        let (known, turn) = state.withLock { ($0.values[container], $0.turn) }
        if let known, !inDoubt { return known }
        guard let value = try await read() else { return nil }
        state.withLock { state in
            if state.turn == turn { state.values[container] = value }
        }
        return value
    }

    /// Removes the value of `container`, because the container was changed.
    func forget(_ container: ContainerKey) {
        state.withLock { state in
            state.turn += 1
            state.values[container] = nil
        }
    }
}
