/// Why a connection takes no new requests.
package enum RetirementCause: String, Sendable, Hashable, CaseIterable {
    /// It could not be opened.
    case connectFailed = "it could not be opened"
    /// The gateway is closing it: it sent a GOAWAY, or libcurl wanted a second socket.
    case closing = "the gateway is closing it"
    /// The peer closed its side.
    case peerClosed = "the gateway closed it"
    /// A transfer ended in an error that concerns the whole connection.
    case broken = "it is broken"
    /// Several requests were not answered, and their streams stay open at the gateway.
    case unanswered = "several requests were not answered"
    /// Nothing was answered for so long that no request waits any longer.
    case silent = "nothing was answered for too long"
    /// An answer asked for another connection (expired token, shutdown, idle timeout …).
    case refused = "the gateway asked for a new connection"
    /// It has served almost as many requests as the gateway lets a connection serve.
    case spent = "it has served about as many requests as the gateway allows"
    /// It has reached its maximum age.
    ///
    /// A new connection sees new addresses.
    case aged = "it has reached its maximum age"
    /// It was not needed.
    case idle = "it was not needed"
    /// Its credential has been replaced.
    case credentialReplaced = "its credential was replaced"
    /// The gateway room is shutting down.
    case shuttingDown = "the relay is shutting down"

    /// Whether the gateway or the network ended it, and not the relay.
    var isGateways: Bool {
        switch self {
        case .connectFailed, .closing, .peerClosed, .broken, .unanswered, .silent, .refused: true
        case .spent, .aged, .idle, .credentialReplaced, .shuttingDown: false
        }
    }

    /// Whether the gateway announced the end, so that a long wait is useless.
    var isGoodbye: Bool {
        switch self {
        case .connectFailed, .closing, .peerClosed, .broken: true
        case .unanswered, .silent, .refused, .spent, .aged, .idle, .credentialReplaced,
            .shuttingDown:
            false
        }
    }

    /// The cause as that of the end of an attempt.
    var cause: PushCause { PushCause(rawValue) }
}

/// The life of one connection: connecting, probing, open, draining.
///
/// A connection is exactly one TCP connection. It begins with a single request, because APNs allows
/// only one stream until it has seen a valid provider token, and libcurl does not wait for the
/// gateway's settings. The first accepted request opens the connection to its full width.
struct ConnectionLife: Sendable, Hashable {
    /// The state of the connection.
    enum State: Sendable, Hashable {
        /// TCP and TLS are being set up.
        ///
        /// The first request waits for them.
        case connecting
        /// It takes one request at a time, until one is accepted.
        case probing
        /// It takes requests up to the full width.
        case open
        /// It takes no new requests, and finishes the open ones.
        case draining(RetirementCause)
    }

    /// The action that a clock tick requires.
    enum TickAction: Sendable, Hashable {
        /// Nothing.
        case none
        /// Close it: no request is open, and none will be.
        case close
        /// Close it, because it answers nothing.
        ///
        /// The outcomes of its open requests are unknown.
        case drop(RetirementCause)
    }

    /// How a request on the connection ended.
    enum Ending: Sendable, Hashable {
        /// The gateway accepted.
        case accepted
        /// The gateway refused.
        case refused(ConnectionVerdict)
        /// There was no answer within the request's time.
        case timedOut
        /// There was an error that concerns only this request.
        case failed
        /// The request was taken back before it was written.
        case withdrawn
        /// There was an error that concerns the connection.
        case broke(RetirementCause)
    }

    private(set) var state = State.connecting
    private(set) var openRequests = 0
    private(set) var answered: UInt64 = 0
    /// The number of requests that it was given.
    private(set) var handedOver = 0
    /// The total number of requests that it may be given, if that is known.
    private(set) var allowance: Int?
    /// The time when it stopped taking requests because the gateway was ending it while it was in
    /// use.
    private var endedAt: MonotonicInstant?
    private var lastAnswer: MonotonicInstant?
    /// Whether nothing was answered for as long as the watchdog allows.
    ///
    /// It takes no new requests until something is.
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

    /// Returns how many more requests it takes when `width` requests may be open at once.
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

    /// Whether its open requests may fail: nothing is answered any more, or the gateway announced
    /// the end before it had accepted anything.
    var isDoubtful: Bool { isSuspect || state == .draining(.closing) && !hasAccepted }

    /// Whether the gateway is ending it.
    ///
    /// Silence is then no sign of a slow gateway.
    var isEnding: Bool {
        if case .draining(let cause) = state { cause.isGoodbye } else { false }
    }

    /// Whether it has not reached its full width yet.
    var isRamping: Bool { !isSuspect && (state == .connecting || state == .probing) }

    /// The number of requests that it may still be given before it is replaced.
    var remaining: Int { allowance.map { max(0, $0 - handedOver) } ?? .max }

    /// Sets the total number of requests that it may be given.
    mutating func allow(_ requests: Int?) {
        allowance = requests
        retireIfSpent()
    }

    private mutating func retireIfSpent() {
        if state == .open, remaining == 0 { retire(.spent) }
    }

    /// Returns how long no request has been open on it at `now`.
    func idleTime(at now: MonotonicInstant) -> Duration {
        openRequests > 0 ? .zero : now.duration(since: lastProgress)
    }

    /// Notes that a request was handed to it.
    mutating func handOver(at now: MonotonicInstant) {
        precondition(isUsable, "handed a request to a connection that is draining")
        if openRequests == 0 { lastProgress = now }
        openRequests += 1
        handedOver += 1
        retireIfSpent()
    }

    /// Notes that TLS is established, and a request is about to be written.
    mutating func establish(at now: MonotonicInstant) {
        guard state == .connecting else { return }
        state = .probing
        lastProgress = now
    }

    /// Notes that a request ended.
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

    /// Notes that the gateway accepted a request whose transfer did not end as an answer.
    mutating func noteAccepted() {
        hasAccepted = true
        answered += 1
    }

    /// Notes at `now` that the gateway takes no more requests on it: the gateway said so, or
    /// libcurl would need another socket.
    mutating func closing(at now: MonotonicInstant) {
        guard isUsable else { return }
        noteEnd(.closing, at: now)
        retire(.closing)
        // It still answers the requests that it has taken, and their time begins now.
        lastProgress = now
    }

    /// Stops taking new requests.
    ///
    /// The first cause stays, except that a connection whose peer has closed its side gets only a
    /// short wait.
    mutating func retire(_ cause: RetirementCause) {
        if isUsable || cause == .peerClosed { state = .draining(cause) }
    }

    /// Notes at `now` that the peer closed its side.
    ///
    /// What was sent before may still arrive.
    mutating func peerClosed(at now: MonotonicInstant) {
        guard state != .draining(.peerClosed) else { return }
        noteEnd(.peerClosed, at: now)
        state = .draining(.peerClosed)
        lastProgress = now
    }

    /// Notes an end by the gateway, unless the connection takes no more requests anyway.
    ///
    /// An end long after the last answer is due to idleness, and says nothing about a number of
    /// requests.
    private mutating func noteEnd(_ cause: RetirementCause, at now: MonotonicInstant) {
        guard isUsable, cause.isGoodbye, hasAccepted, let lastAnswer,
            now.duration(since: lastAnswer) < bounds.watchdog
        else { return }
        endedAt = now
    }

    /// The end of the connection by the gateway while it was in use, or `nil` if there was none.
    var gatewaysEnd: ConnectionEndurance.End? {
        endedAt.map {
            ConnectionEndurance.End(served: Int(clamping: answered), bornAt: bornAt, endedAt: $0)
        }
    }

    /// Returns whether it counts as a failure: the gateway ended it, and accepted nothing on it.
    ///
    /// It counts only once.
    mutating func blame() -> Bool {
        guard case .draining(let cause) = state, cause.isGateways, !hasAccepted, !isBlamed
        else { return false }
        isBlamed = true
        return true
    }

    /// Returns the action that is required at `now`.
    ///
    /// `silence` is how long nothing may be answered while requests are open.
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

    /// Returns how long nothing may be answered in the current state.
    private func patience(_ silence: Duration) -> Duration {
        switch state {
        case .connecting: bounds.connecting + bounds.watchdog
        case .draining(.peerClosed): bounds.farewell
        // A gateway that is known to be slow is also slow with the requests that it has taken.
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

/// The times in the life of a connection.
struct ConnectionBounds: Sendable, Hashable {
    /// The longest time for TCP and TLS together.
    var connecting: Duration = .seconds(10)
    /// The time without any answer, while requests are open, after which the connection takes no
    /// new requests.
    var watchdog: Duration = .seconds(15)
    /// The longest time for one request, from its hand-over to the answer.
    var answer: Duration = .seconds(60)
    /// The longest wait without any answer for a gateway that announced the end.
    var draining: Duration = .seconds(5)
    /// The longest wait without any answer after the peer closed its side.
    var farewell: Duration = .milliseconds(250)
    /// The age at which a connection is replaced, so that new addresses are seen.
    var maximumAge: Duration = .seconds(12 * 3600)
    /// The number of requests without an answer after which it is replaced.
    ///
    /// libcurl 7.88 does not reset their streams, so the gateway's places for streams leak.
    var toleratedTimeouts = 3
}
