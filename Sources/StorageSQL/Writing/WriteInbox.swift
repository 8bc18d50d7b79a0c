import RelayModel
package import Storage
import Synchronization

/// Where requests wait for the writer: bounded, and containers take turns, so that one that writes
/// much does not stand before another's one change.
///
/// The writer waits as a thread does, because it owns one. A lone request is taken at once;
/// while several callers are writing, a commit waits until as many requests are there as the last
/// commit had, but not longer than the delay: they were all answered at the same moment, and come
/// again together.
package final class WriteInbox: Sendable {
    private struct State {
        var waiting = WriteLines()
        var contention = Contention()
        /// How many requests must wait before the writer is woken; 0 if it does not sleep.
        var wakeAt = 0
        var closed: StorageError?
        /// Nothing more comes, and nobody reads any more: the writer may end.
        var isEnding = false
    }

    private let state = Mutex(State())
    private let wakeUps = WakeUp()
    private let settings: StoreSettings
    private let elapsed: @Sendable () -> Duration

    /// `now` tells who wrote lately.
    package init(
        settings: StoreSettings,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.settings = settings
        let began = now()
        elapsed = { began.duration(to: now()) }
    }

    /// Takes requests of one line in, one behind the other and all or none, or says why not.
    package func submit(_ requests: [WriteRequest]) -> StorageError? {
        let (refusal, wakes) = state.withLock { state -> (StorageError?, Bool) in
            if let closed = state.closed { return (closed, false) }
            if let overload = overload(of: requests, state) { return (overload, false) }
            for request in requests {
                if let container = request.container {
                    state.contention.note(container, at: elapsed())
                }
                state.waiting.append(request)
            }
            return (nil, takeWakeUp(&state))
        }
        if wakes { wakeUps.signal() }
        return refusal
    }

    /// Sleeps until there is something to write, and takes what one commit shall hold; `nil` once
    /// the inbox is at its end and empty.
    package func nextBatch(after lastCount: Int) -> [WriteRequest]? {
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
        return state.withLock { state in
            let most = settings.commitChanges
            return state.waiting.take(
                changes: state.contention.isContended(at: elapsed())
                    ? min(most, settings.commitChangesBesideOthers) : most)
        }
    }

    /// Answers all that waits with `error`, without writing it; what comes after that waits again.
    package func turnAway(_ error: StorageError) {
        let waiting = state.withLock { state in
            defer { state.waiting = WriteLines() }
            return state.waiting.all
        }
        for request in waiting { request.fail(error) }
    }

    /// Whether several containers wrote lately.
    package var isContended: Bool { state.withLock { $0.contention.isContended(at: elapsed()) } }

    /// Refuses requests from now on with `error`; those that wait are still taken.
    package func refuse(_ error: StorageError) {
        state.withLock { state in
            if state.closed == nil { state.closed = error }
        }
    }

    /// Refuses requests from now on with `error`, and ends the writer once nothing waits.
    package func end(_ error: StorageError) {
        refuse(error)
        let wakes = state.withLock { state in
            state.isEnding = true
            defer { state.wakeAt = 0 }
            return state.wakeAt > 0
        }
        if wakes { wakeUps.signal() }
    }

    /// Whether nothing more comes.
    package var isEnding: Bool { state.withLock { $0.isEnding } }

    private func overload(of requests: [WriteRequest], _ state: State) -> StorageError? {
        // What is larger than the bound goes alone.
        guard let request = requests.first, !state.waiting.isEmpty else { return nil }
        let asked = (
            changes: requests.reduce(0) { $0 + $1.changes },
            bytes: requests.reduce(0) { $0 + $1.bytes }
        )
        let factor = request.lane == .own ? 2 : 1
        let changes = settings.waitingChanges * factor - state.waiting.changes
        if asked.changes > changes {
            let waiting = Counted.text(state.waiting.changes, "change is", "changes are")
            return .overloaded("\(waiting) waiting to be written")
        }
        let bytes = settings.waitingBytes * factor - state.waiting.bytes
        if asked.bytes > bytes {
            return .overloaded("\(state.waiting.bytes) bytes are waiting to be written")
        }
        guard request.lane == .intake, let own = state.waiting.besideOthers(request.container)
        else { return nil }
        // While others wait too, nobody has more than what is left: so there is always something
        // left, and nobody needs to know how many the others are.
        if own.changes + asked.changes > changes || own.bytes + asked.bytes > bytes {
            let waiting = Counted.text(
                own.changes, "change of the container is", "changes of the container are")
            return .overloaded("\(waiting) waiting to be written, beside others'")
        }
        return nil
    }

    private func takeWakeUp(_ state: inout State) -> Bool {
        let isFull = state.waiting.changes >= settings.commitChanges
        guard state.wakeAt > 0, state.waiting.count >= state.wakeAt || isFull else { return false }
        state.wakeAt = 0
        return true
    }

    private func gather(_ lastCount: Int) {
        let sleeps = state.withLock { state in
            guard state.closed == nil, state.waiting.count < lastCount,
                state.waiting.changes < settings.commitChanges
            else { return false }
            state.wakeAt = lastCount
            return true
        }
        guard sleeps else { return }
        if wakeUps.wait(atMost: settings.commitDelay) { return }
        let wasSignalled = state.withLock { state in
            defer { state.wakeAt = 0 }
            return state.wakeAt == 0
        }
        // Somebody signalled between the time-out and here: the signal must not be left over.
        if wasSignalled { wakeUps.wait() }
    }
}
