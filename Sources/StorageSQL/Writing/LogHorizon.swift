package import RelayModel
package import Storage
import Synchronization

/// The durable head of the log, the latest entries, and the tasks that wait for more.
///
/// It uses a lock and is not an actor, because every access is short and the writer must publish a
/// commit from its thread before it answers the callers.
package final class LogHorizon: Sendable {
    private struct State {
        var head: LogPosition
        var tail = LogTail()
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0
        var closed: StorageError?
    }

    private struct Waiter {
        let position: LogPosition
        let continuation: CheckedContinuation<Void, any Error>
    }

    private let state: Mutex<State>
    private let settings: StoreSettings

    package init(head: LogPosition, settings: StoreSettings) {
        state = Mutex(State(head: head))
        self.settings = settings
    }

    /// The last durable position.
    package var head: LogPosition { state.withLock { $0.head } }

    /// The reason why nothing is written any more; `nil` while the store is open.
    package var closed: StorageError? { state.withLock { $0.closed } }

    /// Publishes a commit.
    package func advance(to head: LogPosition, appended: [StoredEntry]) {
        guard !appended.isEmpty else { return }
        let ready = state.withLock { state in
            state.head = head
            state.tail.append(
                appended, maximumEntries: settings.tailEntries, maximumBytes: settings.tailBytes)
            let ready = state.waiters.filter { $0.value.position < head }
            for id in ready.keys { state.waiters[id] = nil }
            return ready.values.map(\.continuation)
        }
        for continuation in ready { continuation.resume() }
    }

    /// Ends all waits with `error`.
    package func close(_ error: StorageError) {
        let waiters = state.withLock { state in
            if state.closed == nil { state.closed = error }
            defer { state.waiters = [:] }
            return state.waiters.values.map(\.continuation)
        }
        for continuation in waiters { continuation.resume(throwing: error) }
    }

    /// Returns the entries after `position` from memory, or `nil` if the first of them is not in
    /// memory.
    func entries(after position: LogPosition, limit: Int) -> [LogEntry]? {
        state.withLock { state in
            position >= state.head ? [] : state.tail.entries(after: position, limit: limit)
        }
    }

    /// Waits until the head is beyond `position`.
    func waitForGrowth(beyond position: LogPosition) async throws {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enlist(Waiter(position: position, continuation: continuation), id: id)
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }

    private func enlist(_ waiter: Waiter, id: UInt64) {
        let result = state.withLock { state -> Result<Void, any Error>? in
            if state.head > waiter.position { return .success(()) }
            if let closed = state.closed { return .failure(closed) }
            // The task was cancelled before the waiter was enlisted, so the handler found nothing
            // to resume.
            if Task.isCancelled { return .failure(CancellationError()) }
            state.waiters[id] = waiter
            return nil
        }
        if let result { waiter.continuation.resume(with: result) }
    }
}

/// The latest entries of the log without gaps, so that a follower need not decode what was just
/// written.
struct LogTail {
    private var entries: [StoredEntry] = []
    private var start = 0
    private var bytes = 0

    mutating func append(_ new: [StoredEntry], maximumEntries: Int, maximumBytes: Int) {
        entries.append(contentsOf: new)
        bytes += new.reduce(0) { $0 + $1.bytes }
        while start < entries.count,
            entries.count - start > maximumEntries || bytes > maximumBytes
        {
            bytes -= entries[start].bytes
            start += 1
        }
        // Removing the unused first half only when it is that large keeps the amortised cost of an
        // append constant.
        if start > entries.count / 2 {
            entries.removeFirst(start)
            start = 0
        }
    }

    func entries(after position: LogPosition, limit: Int) -> [LogEntry]? {
        guard start < entries.count else { return nil }
        let first = entries[start].entry.position
        guard position.next >= first else { return nil }
        let index = start + Int(clamping: position.next.rawValue - first.rawValue)
        guard index < entries.count else { return [] }
        let end = min(entries.count, index + max(0, limit))
        return entries[index..<end].map(\.entry)
    }
}
