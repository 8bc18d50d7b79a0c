import RelayModel
import Synchronization

/// What other threads have for the gateway's thread.
///
/// A lock, not an actor: putting in and taking out are a few instructions, and a caller must not
/// be able to suspend between.
final class GatewayMailbox: Sendable {
    /// What was put in since the last look.
    struct Mail: Sendable {
        var batches: [[PushRequest]] = []
        var changedContainers: [ContainerKey] = []
        var closing: Closing?

        var isEmpty: Bool { batches.isEmpty && changedContainers.isEmpty && closing == nil }
    }

    /// How the gateway is to end.
    enum Closing: Sendable, Hashable {
        /// Open requests may finish within the bound, as long as some are answered now and then.
        case within(Duration, silence: Duration)
        /// Nobody is left to care.
        case atOnce
    }

    private struct State {
        var mail = Mail()
        var isSignalled = false
        var isClosing = false
        var hasEnded = false
        var waiters: [CheckedContinuation<Void, Never>] = []
        var gauge = GatewayGauge()
    }

    private let state = Mutex(State())
    private let wake: WakeEvent

    init(wake: WakeEvent) {
        self.wake = wake
    }

    /// Puts requests in, or returns `false` if the gateway takes no more.
    func post(_ batch: [PushRequest]) -> Bool {
        put { $0.batches.append(batch) }
    }

    /// Puts in that a container's credential is another one now.
    func post(changed container: ContainerKey) {
        _ = put { $0.changedContainers.append(container) }
    }

    /// Puts in that the gateway is to end; nothing is taken after it.
    func post(_ closing: Closing) {
        let signals = state.withLock { state in
            guard !state.isClosing else { return false }
            state.isClosing = true
            state.mail.closing = closing
            defer { state.isSignalled = true }
            return !state.isSignalled
        }
        if signals { wake.signal() }
    }

    private func put(_ change: (inout Mail) -> Void) -> Bool {
        let (isTaken, signals) = state.withLock { state in
            guard !state.isClosing else { return (false, false) }
            change(&state.mail)
            defer { state.isSignalled = true }
            return (true, !state.isSignalled)
        }
        if signals { wake.signal() }
        return isTaken
    }

    /// Takes everything out, and lets the event be signalled again.
    ///
    /// The event must have been cleared before, not after: what is put in between would be slept
    /// over.
    func take() -> Mail {
        state.withLock { state in
            defer {
                state.mail = Mail()
                state.isSignalled = false
            }
            return state.mail
        }
    }

    /// What the thread is doing, as it last said.
    var gauge: GatewayGauge {
        get { state.withLock { $0.gauge } }
        set { state.withLock { $0.gauge = newValue } }
    }

    /// The thread has ended: everybody who waited goes on.
    func end() {
        let waiters = state.withLock { state in
            state.hasEnded = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits for the thread to end.
    func ended() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if !state.hasEnded { state.waiters.append(continuation) }
                return state.hasEnded
            }
            if hasEnded { continuation.resume() }
        }
    }
}
