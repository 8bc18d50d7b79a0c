/// How fast a client must be: a pure decision over what has come and gone on one connection.
///
/// Only the client's time is counted. While the relay works on an answer, or holds a poll, nothing
/// runs. A body, or the taking of an answer, may neither stand still nor be slow on the whole.
/// Moments are durations since any fixed one.
struct ConnectionPace: Sendable {
    /// How long a client may take.
    struct Bounds: Sendable, Hashable {
        /// For the head of a request, from its first byte; for the first one from the beginning,
        /// with the handshake of TLS.
        var head: Duration = .seconds(15)
        /// For a body, besides what its length allows.
        var body: Duration = .seconds(30)
        /// For taking an answer, besides what its length allows.
        var answer: Duration = .seconds(30)
        /// How long a connection may be without any request.
        var idle: Duration = .seconds(75)
        /// For hearing that it is refused, and going.
        var refusal: Duration = .seconds(2)
        /// What a body, and the taking of an answer, must reach on the whole: a telephone on a bad
        /// day does.
        static let bytesPerSecond = 8192

        init() {}

        /// Those of other relays, which close a connection themselves that nobody uses: one that is
        /// closed at the moment at which they send a call loses it.
        var ofRelays: Bounds {
            var bounds = self
            bounds.idle = max(idle, Self.leastIdleOfRelays)
            return bounds
        }

        /// They keep one for 40 s at the most.
        private static let leastIdleOfRelays = Duration.seconds(75)

        static func allowance(_ bytes: Int) -> Duration {
            .microseconds(Int64(bytes) * 1_000_000 / Int64(bytesPerSecond))
        }
    }

    /// What a client was too slow with.
    enum Slowness: String, Sendable, Hashable, CaseIterable {
        case head, body, answer, idle, refusal
    }

    private enum Incoming: Sendable {
        /// Nothing of a request has come; whether any has come before.
        case nothing(since: Duration, isFirst: Bool)
        /// Bytes have come that are no whole head yet.
        case head(since: Duration)
        /// A head has come.
        case body(since: Duration, last: Duration, bytes: Int)
    }

    private struct Outgoing: Sendable {
        var since: Duration
        var last: Duration
        var bytes = 0
        var pending = 0
    }

    let bounds: Bounds
    private var incoming: Incoming
    /// Requests whose answers are not wholly written.
    private(set) var unanswered = 0
    private var outgoing: Outgoing?
    /// Whether what goes out comes by and by: then only standing still is too slow.
    private var isStreaming = false
    private var ending: Duration?

    init(_ bounds: Bounds, at now: Duration) {
        self.bounds = bounds
        incoming = .nothing(since: now, isFirst: true)
    }

    /// Whether something is being written.
    var isAnswering: Bool { outgoing != nil }

    /// Whether nothing more will be answered.
    var isEnding: Bool { ending != nil }

    /// Whether a request has begun whose body has not come whole.
    var isReceiving: Bool {
        if case .body = incoming { true } else { false }
    }

    /// Whether an answer that comes by and by is not taken to its end.
    var isStreamed: Bool { isStreaming && outgoing != nil }

    /// Whether an answer that says what was too slow could be read as such.
    var mayBeTold: Bool {
        guard ending == nil, outgoing == nil else { return false }
        switch incoming {
        case .body: return unanswered == 1
        case .head: return unanswered == 0
        case .nothing: return false
        }
    }

    /// Notes that something came, be it a part of a head or of what lies below.
    mutating func hear(at now: Duration) {
        if case .nothing(let since, let isFirst) = incoming {
            incoming = .head(since: isFirst ? since : now)
        }
    }

    /// Notes the whole head of a request.
    mutating func head(at now: Duration) {
        incoming = .body(since: now, last: now, bytes: 0)
        unanswered += 1
    }

    /// Notes a part of a body.
    mutating func body(_ bytes: Int, at now: Duration) {
        if case .body(let since, _, let before) = incoming {
            incoming = .body(since: since, last: now, bytes: before + bytes)
        }
    }

    /// Notes that a request is there wholly.
    mutating func requestEnded(at now: Duration) {
        incoming = .nothing(since: now, isFirst: false)
    }

    /// Notes that the answer that begins comes by and by.
    mutating func stream() { isStreaming = true }

    /// Notes that a part of an answer goes out.
    mutating func answer(_ bytes: Int, at now: Duration) {
        if outgoing == nil { outgoing = Outgoing(since: now, last: now) }
        // What waits for something to say has not stood still.
        if isStreaming, outgoing?.pending == 0 { outgoing?.last = now }
        outgoing?.bytes += bytes
        outgoing?.pending += bytes
    }

    /// Notes how much of what goes out the system has not taken yet.
    mutating func answerWaits(_ pending: Int, at now: Duration) {
        guard let before = outgoing?.pending, pending < before else { return }
        outgoing?.pending = pending
        outgoing?.last = now
    }

    /// Notes that an answer has been taken wholly.
    mutating func answerTaken(at now: Duration) {
        outgoing = nil
        isStreaming = false
        unanswered = max(0, unanswered - 1)
        if case .nothing(_, let isFirst) = incoming {
            incoming = .nothing(since: now, isFirst: isFirst)
        } else if case .head = incoming {
            // It came early; its time begins when it can be worked.
            incoming = .head(since: now)
        }
    }

    /// Notes that nothing more will be answered.
    mutating func end(at now: Duration) {
        ending = now
    }

    /// When the client will have been too slow, and with what; `nil` while it is the relay's turn.
    var deadline: (moment: Duration, slowness: Slowness)? {
        if let ending { return (ending + bounds.refusal, .refusal) }
        if let outgoing, isStreaming {
            return outgoing.pending > 0 ? (outgoing.last + bounds.answer, .answer) : nil
        }
        if let outgoing {
            let whole = outgoing.since + bounds.answer + Bounds.allowance(outgoing.bytes)
            return (min(whole, outgoing.last + bounds.answer), .answer)
        }
        switch incoming {
        case .body(let since, let last, let bytes):
            let whole = since + bounds.body + Bounds.allowance(bytes)
            return (min(whole, last + bounds.body), .body)
        case .head(let since):
            return unanswered > 0 ? nil : (since + bounds.head, .head)
        case .nothing(let since, let isFirst):
            guard unanswered == 0 else { return nil }
            return isFirst ? (since + bounds.head, .head) : (since + bounds.idle, .idle)
        }
    }
}
