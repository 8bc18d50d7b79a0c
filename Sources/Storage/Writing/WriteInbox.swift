import Dispatch
import Synchronization

/// Where requests wait for the writer: bounded, first in, first out.
///
/// The writer waits on a semaphore, because it owns a thread. A lone request is taken at once;
/// while several callers are writing, a commit waits until as many requests are there as the last
/// commit had, but not longer than the delay: they were all answered at the same moment, and come
/// again together.
final class WriteInbox: Sendable {
    private struct State {
        var waiting: [WriteRequest] = []
        var changes = 0
        var bytes = 0
        /// The writer sleeps until so many requests wait; 0 if it does not sleep.
        var wakeAt = 0
        var closed: StorageError?
        /// Nothing more comes, and nobody reads any more: the writer may end.
        var isEnding = false
    }

    private let state = Mutex(State())
    private let wakeUps = DispatchSemaphore(value: 0)
    private let settings: StoreSettings

    init(settings: StoreSettings) {
        self.settings = settings
    }

    /// Takes a request in, or says why not.
    func submit(_ request: WriteRequest) -> StorageError? {
        let (refusal, wakes) = state.withLock { state -> (StorageError?, Bool) in
            if let closed = state.closed { return (closed, false) }
            if let overload = overload(of: request, state) { return (overload, false) }
            state.waiting.append(request)
            state.changes += request.changes
            state.bytes += request.bytes
            return (nil, takeWakeUp(&state))
        }
        if wakes { wakeUps.signal() }
        return refusal
    }

    /// Sleeps until there is something to write, and takes what one commit shall hold; `nil` once
    /// the inbox is at its end and empty.
    func nextBatch(after lastCount: Int) -> [WriteRequest]? {
        while true {
            let isEmpty = state.withLock { state in
                if state.waiting.isEmpty, !state.isEnding { state.wakeAt = 1 }
                return state.waiting.isEmpty
            }
            if !isEmpty { break }
            if isEnding { return nil }
            wakeUps.wait()
        }
        gather(lastCount)
        return state.withLock { take(&$0) }
    }

    /// Refuses requests from now on with `error`; those that wait are still taken.
    func refuse(_ error: StorageError) {
        state.withLock { state in
            if state.closed == nil { state.closed = error }
        }
    }

    /// Refuses requests from now on with `error`, and ends the writer once nothing waits.
    func end(_ error: StorageError) {
        refuse(error)
        let wakes = state.withLock { state in
            state.isEnding = true
            defer { state.wakeAt = 0 }
            return state.wakeAt > 0
        }
        if wakes { wakeUps.signal() }
    }

    private var isEnding: Bool { state.withLock { $0.isEnding } }

    private func overload(of request: WriteRequest, _ state: State) -> StorageError? {
        let factor = request.lane == .own ? 2 : 1
        // A request that is larger than the bound goes alone.
        if state.waiting.isEmpty { return nil }
        if state.changes + request.changes > settings.waitingChanges * factor {
            return .overloaded("\(state.changes) changes are waiting to be written")
        }
        if state.bytes + request.bytes > settings.waitingBytes * factor {
            return .overloaded("\(state.bytes) bytes are waiting to be written")
        }
        return nil
    }

    private func takeWakeUp(_ state: inout State) -> Bool {
        let isFull = state.changes >= settings.commitChanges
        guard state.wakeAt > 0, state.waiting.count >= state.wakeAt || isFull else { return false }
        state.wakeAt = 0
        return true
    }

    private func gather(_ lastCount: Int) {
        let sleeps = state.withLock { state in
            guard state.closed == nil, state.waiting.count < lastCount,
                state.changes < settings.commitChanges
            else { return false }
            state.wakeAt = lastCount
            return true
        }
        guard sleeps else { return }
        let nanoseconds = settings.commitDelay / .nanoseconds(1)
        let result = wakeUps.wait(timeout: .now() + .nanoseconds(Int(nanoseconds)))
        if result == .success { return }
        let wasSignalled = state.withLock { state in
            defer { state.wakeAt = 0 }
            return state.wakeAt == 0
        }
        // Somebody signalled between the time-out and here: the signal must not be left over.
        if wasSignalled { wakeUps.wait() }
    }

    private func take(_ state: inout State) -> [WriteRequest] {
        var changes = 0
        var count = 0
        while count < state.waiting.count, changes < settings.commitChanges {
            changes += state.waiting[count].changes
            count += 1
        }
        let batch = Array(state.waiting[..<count])
        state.waiting.removeFirst(count)
        state.changes -= changes
        state.bytes -= batch.reduce(0) { $0 + $1.bytes }
        return batch
    }
}
