package import RelayModel
package import Storage
import Synchronization

/// The queue of requests for the writer.
///
/// It is bounded, and containers take turns, so that a container with many writes does not delay
/// another container's single change.
///
/// The writer owns a thread, so it waits by blocking. A lone request is taken at once. While
/// several callers are writing, a commit waits until there are as many requests as in the last
/// commit, but at most for the commit delay: those callers were answered at the same moment, and
/// their next requests arrive together.
package final class WriteInbox: Sendable {
    private struct State {
        var waiting = WriteLines()
        var contention = Contention()
        /// The number of waiting requests at which the writer is woken; 0 if it is not asleep.
        var wakeAt = 0
        var closed: StorageError?
        /// Whether no more requests are accepted, so that the writer may end when the queue is
        /// empty.
        var isEnding = false
    }

    private let state = Mutex(State())
    private let wakeUps = WakeUp()
    private let settings: StoreSettings
    private let elapsed: @Sendable () -> Duration

    /// Creates a queue.
    ///
    /// `now` is the clock that tells which containers wrote recently.
    package init(
        settings: StoreSettings,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.settings = settings
        let began = now()
        elapsed = { began.duration(to: now()) }
    }

    /// Accepts all requests of one line in order, or returns why none of them is accepted.
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

    /// Waits until there is something to write, and returns the requests for one commit, or `nil`
    /// once the queue has ended and is empty.
    ///
    /// While several containers write, a commit has either small or large requests, by turns. With
    /// `smallFirst`, small ones come first out of turn, because they have just waited for something
    /// else.
    package func nextBatch(after lastCount: Int, smallFirst: Bool = false) -> [WriteRequest]? {
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
            guard state.contention.isContended(at: elapsed()) else {
                return state.waiting.take(changes: most)
            }
            return state.waiting.takeApart(
                changes: min(most, settings.commitChangesBesideOthers), smallFirst: smallFirst)
        }
    }

    /// Whether requests wait that would have the next commit, before large ones of others.
    package var hasSmallBesideOthers: Bool {
        state.withLock { $0.contention.isContended(at: elapsed()) && $0.waiting.hasSmall }
    }

    /// The size of the appended entries in bytes at which a commit takes no further request.
    package var mostBytes: Int { isContended ? settings.commitBytesBesideOthers : .max }

    /// Takes back the requests of a batch for which a commit had no room: those after the first
    /// `count`.
    ///
    /// They were accepted before, so no limit refuses them now.
    package func takeBack(_ batch: [WriteRequest], after count: Int) {
        guard count < batch.count, let last = batch[..<count].last else { return }
        state.withLock { $0.waiting.takeBack(batch[count...], after: last.container) }
    }

    /// Answers all waiting requests with `error` without writing them.
    ///
    /// Later requests are accepted again.
    package func turnAway(_ error: StorageError) {
        let waiting = state.withLock { state in
            defer { state.waiting = WriteLines() }
            return state.waiting.all
        }
        for request in waiting { request.fail(error) }
    }

    /// Whether several containers wrote recently.
    package var isContended: Bool { state.withLock { $0.contention.isContended(at: elapsed()) } }

    /// Whether containers other than `container` wrote recently.
    package func isContended(by container: ContainerKey) -> Bool {
        state.withLock { $0.contention.isContended(by: container, at: elapsed()) }
    }

    /// Refuses requests from now on with `error`.
    ///
    /// Waiting requests are still written.
    package func refuse(_ error: StorageError) {
        state.withLock { state in
            if state.closed == nil { state.closed = error }
        }
    }

    /// Refuses requests from now on with `error`, and ends the writer when nothing waits.
    package func end(_ error: StorageError) {
        refuse(error)
        let wakes = state.withLock { state in
            state.isEnding = true
            defer { state.wakeAt = 0 }
            return state.wakeAt > 0
        }
        if wakes { wakeUps.signal() }
    }

    /// Whether no more requests are accepted.
    package var isEnding: Bool { state.withLock { $0.isEnding } }

    private func overload(of requests: [WriteRequest], _ state: State) -> StorageError? {
        // A request larger than the limit is accepted only if nothing else waits.
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
        // While others wait too, no container may have more than what is left of the limit. So
        // there is always something left, without counting the other containers.
        if own.changes + asked.changes > changes || own.bytes + asked.bytes > bytes {
            let waiting = Counted.text(
                own.changes, "change of the container is", "changes of the container are")
            return .overloaded("\(waiting) waiting to be written, as well as those of others")
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
        // A signal came between the time-out and this point. It must be consumed.
        if wasSignalled { wakeUps.wait() }
    }
}
