import HTTPTypes

/// How far a call is that is handed to the relay that owns the store: a pure decision over what
/// happened.
///
/// What may have been worked, and changes something, is never sent again. What certainly was not,
/// and what only asks, is sent again as long as all of it is here still, and somebody may own the
/// store within the time that a call waits.
/// Moments are durations since any fixed one.
struct ForwardedCall: Sendable, Hashable {
    /// What went wrong.
    enum Failure: Sendable, Hashable {
        /// The owner could not be reached.
        case unreachable
        /// The other relay does not own the store, and has done nothing.
        case declined
        /// The connection ended.
        case lost
        /// Another relay owns the store now.
        case ownerChanged
    }

    /// What follows from it.
    enum Verdict: Sendable, Hashable {
        /// It is tried again in a moment, or once the owner changes.
        case retry
        /// It is answered, with this status and reason.
        case refuse(status: Int, String)
        /// The answer has begun, and cannot be ended in order.
        case cut
    }

    /// How much of a call is kept, so that it can be sent again to another relay.
    static let mostKept = 16_384

    /// When waiting for an owner ends.
    let deadline: Duration
    /// Whether it may be worked twice: it only asks.
    private let isSafe: Bool
    /// The bytes of the body that were sent.
    private var bytes = 0
    /// Whether anything may have reached the owner.
    private(set) var hasBegun = false
    private(set) var isAnswered = false

    init(at now: Duration, patience: Duration, isSafe: Bool = false) {
        deadline = now + patience
        self.isSafe = isSafe
    }

    /// The methods that change nothing (RFC 9110, §9.2.1).
    static let safeMethods: Set<HTTPRequest.Method> = [.get, .head, .options]

    /// Whether all that was sent is kept still.
    var isWhole: Bool { bytes <= Self.mostKept }

    /// Whether a body of so many bytes is asked for before it is sent: a body that is not kept is
    /// then sent only to somebody who takes it.
    static func asksFirst(length: Int?, isChunked: Bool) -> Bool {
        isChunked || length ?? 0 > mostKept
    }

    /// Notes that the head goes out.
    mutating func begin() { hasBegun = true }

    /// Notes that a part of the body goes out.
    mutating func send(_ count: Int) { bytes += count }

    /// Notes that all of it is to be sent once more.
    mutating func startOver() {
        hasBegun = false
        bytes = 0
    }

    /// Notes that the answer has come that goes to the client.
    mutating func answer() { isAnswered = true }

    /// What follows from a failure at `now`.
    func verdict(on failure: Failure, at now: Duration) -> Verdict {
        guard !isAnswered else { return .cut }
        guard !hasBegun || isSafe || failure == .declined else {
            return .refuse(
                status: 502,
                "the relay that owns the store ended while it had this call: whether it was worked "
                    + "is not known")
        }
        guard isWhole else {
            return .refuse(
                status: 503, "another relay owns the store now, and this call has gone by halves")
        }
        guard now < deadline else { return .refuse(status: 503, Self.nobody) }
        return .retry
    }

    static let nobody = "no relay owns the store at the moment"
}
