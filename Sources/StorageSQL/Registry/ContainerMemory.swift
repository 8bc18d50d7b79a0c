import RelayModel
import Storage
import Synchronization

/// What was read of each container, so that a request need not read it again.
///
/// This process alone writes it, as long as the store is its own: where that is in doubt, what is
/// remembered does not count. What was read before the last change of any is not remembered.
final class ContainerMemory<Value: Sendable>: Sendable {
    private struct State {
        var values: [ContainerKey: Value] = [:]
        /// The number of changes so far.
        var turn: UInt64 = 0
    }

    private let state = Mutex(State())

    /// What is remembered of `container`, or what `read` finds; nothing found is not remembered, so
    /// that names that nobody knows take no room.
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

    /// Forgets what was read of `container`, because it was changed.
    func forget(_ container: ContainerKey) {
        state.withLock { state in
            state.turn += 1
            state.values[container] = nil
        }
    }
}
