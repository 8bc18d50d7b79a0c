import RelayModel
import Storage
import Synchronization

/// Says whose inboxes were written, to those who watch them.
final class InboxNews: Sendable {
    private typealias Watchers = [UInt64: AsyncStream<Void>.Continuation]

    private struct State {
        var last: UInt64 = 0
        var watchers: [InboxOwner: Watchers] = [:]
    }

    private let state = Mutex(State())

    /// Yields after the inbox was written, until the stream is read no more.
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

    /// Tells those who watch an inbox of a container.
    func tell(container: ContainerKey) {
        let watchers = state.withLock { state -> [AsyncStream<Void>.Continuation] in
            state.watchers.filter { $0.key.container == container }
                .flatMap { Array($0.value.values) }
        }
        for watcher in watchers { watcher.yield() }
    }

    /// Tells those who watch one of these inboxes; a step without notifications costs nothing.
    func tell(_ owners: some Collection<InboxOwner>) {
        guard !owners.isEmpty else { return }
        let watchers = state.withLock { state -> [AsyncStream<Void>.Continuation] in
            guard !state.watchers.isEmpty else { return [] }
            return Set(owners).flatMap { state.watchers[$0].map { Array($0.values) } ?? [] }
        }
        for watcher in watchers { watcher.yield() }
    }
}
