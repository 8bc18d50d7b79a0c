import RelayModel
import Storage
import Synchronization

/// Notifies watchers of writes into inboxes.
final class InboxNews: Sendable {
    private typealias Watchers = [UInt64: AsyncStream<Void>.Continuation]

    private struct State {
        var last: UInt64 = 0
        var watchers: [InboxOwner: Watchers] = [:]
    }

    private let state = Mutex(State())

    /// Returns a stream that yields after writes into the inbox, until its reader ends.
    func watch(_ owner: InboxOwner) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream<Void>.makeStream(
            bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.last += 1
            state.watchers[owner, default: [:]][state.last] = continuation
            return state.last
        }
        continuation.onTermination = { [weak self] _ in self?.forget(number, of: owner) }
        return stream
    }

    private func forget(_ number: UInt64, of owner: InboxOwner) {
        state.withLock { state in
            state.watchers[owner]?[number] = nil
            if state.watchers[owner]?.isEmpty == true { state.watchers[owner] = nil }
        }
    }

    /// Notifies the watchers of all inboxes of a container.
    func tell(container: ContainerKey) {
        let watchers = state.withLock { state -> [AsyncStream<Void>.Continuation] in
            state.watchers.filter { $0.key.container == container }
                .flatMap { Array($0.value.values) }
        }
        for watcher in watchers { watcher.yield() }
    }

    /// Notifies the watchers of these inboxes.
    ///
    /// A step without notifications costs nothing.
    func tell(_ owners: some Collection<InboxOwner>) {
        guard !owners.isEmpty else { return }
        let watchers = state.withLock { state -> [AsyncStream<Void>.Continuation] in
            guard !state.watchers.isEmpty else { return [] }
            return Set(owners).flatMap { state.watchers[$0].map { Array($0.values) } ?? [] }
        }
        for watcher in watchers { watcher.yield() }
    }
}
