/// Why a connection takes nothing new.
package enum RetirementCause: String, Sendable, Hashable, CaseIterable {
    /// It never came to be.
    case connectFailed = "it could not be opened"
    /// The gateway is closing it: a GOAWAY was heard, or libcurl wanted a second socket.
    case closing = "the gateway is closing it"
    /// The peer closed its side.
    case peerClosed = "the gateway closed it"
    /// A transfer ended in an error that is the whole connection's.
    case broken = "it is broken"
    /// Several requests were not answered, and their streams stay open at the gateway.
    case unanswered = "several requests were not answered"
    /// Nothing was answered for so long that no request is waiting any more.
    case silent = "nothing was answered for too long"
    /// An answer said so (expired token, shutdown, idle timeout …).
    case refused = "the gateway wants another one"
    /// The gateway has ended others after little more than it has served.
    case spent = "it has served as many as the gateway lets one serve"
    /// It has lived long enough; a new one sees new addresses.
    case aged = "it has lived long enough"
    /// It was not needed.
    case idle = "it was not needed"
    /// The credential that it belongs to has been replaced.
    case credentialReplaced = "its credential was replaced"
    /// The gateway room is shutting down.
    case shuttingDown = "the relay is shutting down"

    /// Whether the gateway, or the way to it, ended it, and not the relay.
    var isGateways: Bool {
        switch self {
        case .connectFailed, .closing, .peerClosed, .broken, .unanswered, .silent, .refused: true
        case .spent, .aged, .idle, .credentialReplaced, .shuttingDown: false
        }
    }

    /// Whether the gateway said goodbye, so that it need not be waited for long.
    var isGoodbye: Bool {
        switch self {
        case .connectFailed, .closing, .peerClosed, .broken: true
        case .unanswered, .silent, .refused, .spent, .aged, .idle, .credentialReplaced,
            .shuttingDown:
            false
        }
    }

    /// The same, as the cause of an attempt's end.
    var cause: PushCause { PushCause(rawValue) }
}

/// The life of one connection: connecting, probing, open, draining.
///
/// A connection is one TCP connection and never another. It begins with one request alone, because
/// APNs allows a single stream until it has seen a valid provider token and libcurl does not wait
/// for the gateway's settings; the first accepted request opens it to the full width.
struct ConnectionLife: Sendable, Hashable {
    /// Where the connection stands.
    enum State: Sendable, Hashable {
        /// TCP and TLS are on their way; the first request waits for them.
        case connecting
        /// One request at a time until one is accepted.
        case probing
        /// The full width.
        case open
        /// Nothing new; what is open finishes.
        case draining(RetirementCause)
    }

    /// What a clock tick asks for.
    enum TickAction: Sendable, Hashable {
        /// Nothing.
        case none
        /// Nothing is open and nothing will be: close it.
        case close
        /// It answers nothing: close it, and what is open has an unknown outcome.
        case drop(RetirementCause)
    }

    /// How a request on it ended.
    enum Ending: Sendable, Hashable {
        /// The gateway accepted.
        case accepted
        /// The gateway refused.
        case refused(ConnectionVerdict)
        /// No answer within the request's time.
        case timedOut
        /// An error that concerns this request alone.
        case failed
        /// It was taken back before it was written.
        case withdrawn
        /// An error that concerns the connection.
        case broke(RetirementCause)
    }

    private(set) var state = State.connecting
    private(set) var openRequests = 0
    private(set) var answered: UInt64 = 0
    /// How many requests it was given.
    private(set) var handedOver = 0
    /// How many it may be given in all, as far as that is known.
    private(set) var allowance: Int?
    /// When it stopped taking requests because the gateway was ending it, in the midst of work.
    private var endedAt: MonotonicInstant?
    private var lastAnswer: MonotonicInstant?
    /// Whether nothing was answered for the length of the watchdog: it takes nothing new until
    /// something is.
    private(set) var isSuspect = false
    private var hasAccepted = false
    private var isBlamed = false
    let bornAt: MonotonicInstant
    private var lastProgress: MonotonicInstant
    private var timeouts = 0
    private let bounds: ConnectionBounds

    init(bornAt: MonotonicInstant, bounds: ConnectionBounds, allowance: Int? = nil) {
        self.bornAt = bornAt
        self.allowance = allowance
        lastProgress = bornAt
        self.bounds = bounds
    }

    /// How many more requests it takes when `width` may be open at once.
    func vacancies(width: Int) -> Int {
        guard !isSuspect else { return 0 }
        return switch state {
        case .connecting, .probing: max(0, 1 - openRequests)
        case .open: max(0, min(width - openRequests, remaining))
        case .draining: 0
        }
    }

    /// Whether it may take requests now or later.
    var isUsable: Bool {
        if case .draining = state { false } else { true }
    }

    /// Whether new requests may be given to it, now or when it has room.
    var takesRequests: Bool { isUsable && !isSuspect }

    /// Whether nothing may come of what is open: nothing is answered any more, or the gateway said
    /// goodbye before it had accepted anything.
    var isDoubtful: Bool { isSuspect || state == .draining(.closing) && !hasAccepted }

    /// Whether the gateway is ending it: that it is silent then is no sign of a slow one.
    var isEnding: Bool {
        if case .draining(let cause) = state { cause.isGoodbye } else { false }
    }

    /// Whether it is on its way to its full width.
    var isRamping: Bool { !isSuspect && (state == .connecting || state == .probing) }

    /// How many more requests it may be given before it is replaced.
    var remaining: Int { allowance.map { max(0, $0 - handedOver) } ?? .max }

    /// Sets how many requests it may be given in all.
    mutating func allow(_ requests: Int?) {
        allowance = requests
        retireIfSpent()
    }

    private mutating func retireIfSpent() {
        if state == .open, remaining == 0 { retire(.spent) }
    }

    /// How long nothing has been open on it at `now`.
    func idleTime(at now: MonotonicInstant) -> Duration {
        openRequests > 0 ? .zero : now.duration(since: lastProgress)
    }

    /// A request was handed to it.
    mutating func handOver(at now: MonotonicInstant) {
        precondition(isUsable, "handed a request to a connection that is draining")
        if openRequests == 0 { lastProgress = now }
        openRequests += 1
        handedOver += 1
        retireIfSpent()
    }

    /// TLS is up: a request is about to be written.
    mutating func establish(at now: MonotonicInstant) {
        guard state == .connecting else { return }
        state = .probing
        lastProgress = now
    }

    /// A request ended.
    mutating func finish(_ ending: Ending, at now: MonotonicInstant) {
        precondition(openRequests > 0, "ended a request that was not open")
        openRequests -= 1
        switch ending {
        case .accepted:
            hasAccepted = true
            progress(at: now)
            if state == .probing || state == .connecting { state = .open }
            retireIfSpent()
        case .refused(let verdict):
            progress(at: now)
            if verdict == .retire { retire(.refused) }
        case .timedOut:
            timeouts += 1
            if timeouts >= bounds.toleratedTimeouts { retire(.unanswered) }
        case .failed:
            isSuspect = false
            lastProgress = now
        case .withdrawn: break
        case .broke(let cause):
            noteEnd(cause, at: now)
            retire(cause)
        }
    }

    /// The gateway accepted a request that did not end as an answer.
    mutating func noteAccepted() {
        hasAccepted = true
        answered += 1
    }

    /// The gateway takes no more on this one: it said so, `now`, or libcurl would need another
    /// socket.
    mutating func closing(at now: MonotonicInstant) {
        guard isUsable else { return }
        noteEnd(.closing, at: now)
        retire(.closing)
        // It answers what it has taken: that has its time from now on.
        lastProgress = now
    }

    /// Takes nothing new from now on; the first cause stays, except that a peer that has closed is
    /// waited for only briefly.
    mutating func retire(_ cause: RetirementCause) {
        if isUsable || cause == .peerClosed { state = .draining(cause) }
    }

    /// The peer closed its side, `now`; what was sent before may still arrive.
    mutating func peerClosed(at now: MonotonicInstant) {
        guard state != .draining(.peerClosed) else { return }
        noteEnd(.peerClosed, at: now)
        state = .draining(.peerClosed)
        lastProgress = now
    }

    /// The gateway ends it, unless it takes nothing more anyway.
    ///
    /// An end long after the last answer is one of idleness and says nothing about a number.
    private mutating func noteEnd(_ cause: RetirementCause, at now: MonotonicInstant) {
        guard isUsable, cause.isGoodbye, hasAccepted, let lastAnswer,
            now.duration(since: lastAnswer) < bounds.watchdog
        else { return }
        endedAt = now
    }

    /// The end that the gateway made of it while it was at work, or `nil` if there was none.
    var gatewaysEnd: ConnectionEndurance.End? {
        endedAt.map {
            ConnectionEndurance.End(served: Int(clamping: answered), bornAt: bornAt, endedAt: $0)
        }
    }

    /// Whether it counts as a failure, which it does once: the gateway ended it, and accepted
    /// nothing on it.
    mutating func blame() -> Bool {
        guard case .draining(let cause) = state, cause.isGateways, !hasAccepted, !isBlamed
        else { return false }
        isBlamed = true
        return true
    }

    /// What is to be done at `now`, if nothing may be answered for as long as `silence` while
    /// requests are open.
    mutating func tick(at now: MonotonicInstant, tolerating silence: Duration) -> TickAction {
        guard openRequests > 0 else {
            if isSuspect { retire(.silent) }
            if isUsable, now.duration(since: bornAt) >= bounds.maximumAge { retire(.aged) }
            return isUsable ? .none : .close
        }
        let silent = now.duration(since: lastProgress)
        if silent >= patience(silence) {
            return .drop(state == .connecting ? .connectFailed : .silent)
        }
        if state != .connecting, silent >= bounds.watchdog { isSuspect = true }
        if state == .open, now.duration(since: bornAt) >= bounds.maximumAge { retire(.aged) }
        return .none
    }

    /// How long nothing may be answered in the present state.
    private func patience(_ silence: Duration) -> Duration {
        switch state {
        case .connecting: bounds.connecting + bounds.watchdog
        case .draining(.peerClosed): bounds.farewell
        // One that is known to be slow is so with what it has taken, too.
        case .draining(.closing) where silence > bounds.watchdog: silence
        case .draining(let cause) where cause.isGoodbye: min(bounds.watchdog, bounds.draining)
        case .probing, .open, .draining: silence
        }
    }

    private mutating func progress(at now: MonotonicInstant) {
        isSuspect = false
        lastProgress = now
        lastAnswer = now
        answered += 1
    }
}

/// The times of a connection's life.
struct ConnectionBounds: Sendable, Hashable {
    /// For TCP and TLS together.
    var connecting: Duration = .seconds(10)
    /// Nothing answered for so long while requests are open: the connection takes nothing new.
    var watchdog: Duration = .seconds(15)
    /// For one request, from its hand-over to the answer.
    var answer: Duration = .seconds(60)
    /// Nothing answered for so long by a gateway that said goodbye: it is not waited for.
    var draining: Duration = .seconds(5)
    /// The same after the peer closed its side.
    var farewell: Duration = .milliseconds(250)
    /// After that it is replaced, so that new addresses are seen.
    var maximumAge: Duration = .seconds(12 * 3600)
    /// Requests without an answer before it is replaced: libcurl 7.88 does not reset their
    /// streams, so that the gateway's places leak.
    var toleratedTimeouts = 3
}
