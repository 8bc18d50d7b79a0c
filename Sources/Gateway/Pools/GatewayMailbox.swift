import RelayModel
import Synchronization

/// The messages of other threads for the gateway's thread.
///
/// A lock and not an actor, because posting and taking are a few instructions, and a caller must
/// not suspend in between.
final class GatewayMailbox: Sendable {
    /// The messages since the last look.
    struct Mail: Sendable {
        var batches: [[PushRequest]] = []
        var changedContainers: [ContainerKey] = []
        var closing: Closing?

        var isEmpty: Bool { batches.isEmpty && changedContainers.isEmpty && closing == nil }
    }

    /// How the gateway must end.
    enum Closing: Sendable, Hashable {
        /// Open requests may finish within the bound, as long as answers come at least every
        /// `silence`.
        case within(Duration, silence: Duration)
        /// No caller needs the results any more.
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

    /// Posts requests.
    ///
    /// Returns `false` if the gateway takes no more.
    func post(_ batch: [PushRequest]) -> Bool {
        put { $0.batches.append(batch) }
    }

    /// Posts that the credential of a container has changed.
    func post(changed container: ContainerKey) {
        _ = put { $0.changedContainers.append(container) }
    }

    /// Posts that the gateway must end.
    ///
    /// Nothing is taken after that.
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

    /// Takes all messages, and lets the event be signalled again.
    ///
    /// The event must be cleared before this call and not after it. Otherwise the thread would
    /// sleep although a message was posted in between.
    func take() -> Mail {
        state.withLock { state in
            defer {
                state.mail = Mail()
                state.isSignalled = false
            }
            return state.mail
        }
    }

    /// The load of the thread, as it last reported it.
    var gauge: GatewayGauge {
        get { state.withLock { $0.gauge } }
        set { state.withLock { $0.gauge = newValue } }
    }

    /// Notes that the thread has ended, and resumes the waiting callers.
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
