import HTTPTypes

/// The state of a call that is forwarded to the relay that owns the store: a pure decision.
///
/// A call that may have been handled and changes something is never sent again. A call that
/// certainly was not handled, or only reads, is sent again if all of it is still kept and there is
/// time left to wait for an owner. Moments are durations since any fixed moment.
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

    /// The consequence of a failure.
    enum Verdict: Sendable, Hashable {
        /// Retry after a pause, or once the owner changes.
        case retry
        /// Answer with this status and reason.
        case refuse(status: Int, String)
        /// Cut the connection off, because the answer has begun and cannot be completed.
        case cut
    }

    /// How many bytes of a call are kept for a retry.
    static let mostKept = 16_384

    /// The moment at which waiting for an owner ends.
    let deadline: Duration
    /// Whether it may be handled twice, because it only reads.
    private let isSafe: Bool
    /// The number of bytes of the body that were sent.
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

    /// Whether everything that was sent is still kept.
    var isWhole: Bool { bytes <= Self.mostKept }

    /// Returns whether the owner must accept a body of this length before it is sent.
    ///
    /// A body that is not kept is then sent only to a relay that takes it.
    static func asksFirst(length: Int?, isChunked: Bool) -> Bool {
        isChunked || length ?? 0 > mostKept
    }

    /// Notes that the head is sent.
    mutating func begin() { hasBegun = true }

    /// Notes that a part of the body is sent.
    mutating func send(_ count: Int) { bytes += count }

    /// Notes that everything is to be sent again.
    mutating func startOver() {
        hasBegun = false
        bytes = 0
    }

    /// Notes that the answer for the client has begun.
    mutating func answer() { isAnswered = true }

    /// Returns the consequence of a failure at `now`.
    func verdict(on failure: Failure, at now: Duration) -> Verdict {
        guard !isAnswered else { return .cut }
        guard !hasBegun || isSafe || failure == .declined else {
            return .refuse(
                status: 502,
                "the relay that owns the store ended while it handled this call: it is not known "
                    + "whether the call was carried out")
        }
        guard isWhole else {
            return .refuse(
                status: 503,
                "another relay owns the store now, and this call is too large to be "
                    + "forwarded again: repeat it")
        }
        guard now < deadline else { return .refuse(status: 503, Self.nobody) }
        return .retry
    }

    static let nobody = "no relay owns the store at the moment"
}
