/// Decides how fast a client must be: a pure decision over the traffic of one connection.
///
/// Only the client's time counts. While the relay works on an answer or holds a poll, there is no
/// limit. Neither sending a body nor receiving an answer may stall, or be too slow on the whole.
/// Moments are durations since any fixed moment.
struct ConnectionPace: Sendable {
    /// The time limits of a client.
    struct Bounds: Sendable, Hashable {
        /// For the head of a request, from its first byte; for the first request from the
        /// connection's beginning, including the TLS handshake.
        var head: Duration = .seconds(15)
        /// For a body, in addition to the allowance for its length.
        var body: Duration = .seconds(30)
        /// For receiving an answer, in addition to the allowance for its length.
        var answer: Duration = .seconds(30)
        /// How long a connection may be without any request.
        var idle: Duration = .seconds(75)
        /// For receiving a refusal and closing the connection.
        var refusal: Duration = .seconds(2)
        /// The lowest rate for sending a body and receiving an answer, on the whole; a poor mobile
        /// connection reaches it.
        static let bytesPerSecond = 8192

        init() {}

        /// The limits for other relays, which close idle connections themselves.
        ///
        /// If this side closed a connection at the moment at which the other relay sends a call,
        /// the call would be lost.
        var ofRelays: Bounds {
            var bounds = self
            bounds.idle = max(idle, Self.leastIdleOfRelays)
            return bounds
        }

        /// Other relays keep an idle connection for at most 40 s.
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
        /// No byte of a request has arrived; `isFirst` says whether none has arrived before.
        case nothing(since: Duration, isFirst: Bool)
        /// Some bytes of a head have arrived.
        case head(since: Duration)
        /// A head has arrived.
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
    /// The number of requests whose answers are not completely written.
    private(set) var unanswered = 0
    private var outgoing: Outgoing?
    /// Whether the answer is a stream, for which only stalling is too slow.
    private var isStreaming = false
    private var ending: Duration?

    init(_ bounds: Bounds, at now: Duration) {
        self.bounds = bounds
        incoming = .nothing(since: now, isFirst: true)
    }

    /// Whether an answer is being written.
    var isAnswering: Bool { outgoing != nil }

    /// Whether no further request will be answered.
    var isEnding: Bool { ending != nil }

    /// Whether a request has begun whose body is incomplete.
    var isReceiving: Bool {
        if case .body = incoming { true } else { false }
    }

    /// Whether a streamed answer is in progress.
    var isStreamed: Bool { isStreaming && outgoing != nil }

    /// Whether the client could recognise an answer about its slowness as the answer to its
    /// request.
    var mayBeTold: Bool {
        guard ending == nil, outgoing == nil else { return false }
        switch incoming {
        case .body: return unanswered == 1
        case .head: return unanswered == 0
        case .nothing: return false
        }
    }

    /// Notes that bytes arrived, either a part of a head or of a lower protocol.
    mutating func hear(at now: Duration) {
        if case .nothing(let since, let isFirst) = incoming {
            incoming = .head(since: isFirst ? since : now)
        }
    }

    /// Notes the complete head of a request.
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

    /// Notes the end of a request.
    mutating func requestEnded(at now: Duration) {
        incoming = .nothing(since: now, isFirst: false)
    }

    /// Notes that the answer that begins is a stream.
    mutating func stream() { isStreaming = true }

    /// Notes that a part of an answer is written.
    mutating func answer(_ bytes: Int, at now: Duration) {
        if outgoing == nil { outgoing = Outgoing(since: now, last: now) }
        // A stream that had nothing to send has not stalled.
        if isStreaming, outgoing?.pending == 0 { outgoing?.last = now }
        outgoing?.bytes += bytes
        outgoing?.pending += bytes
    }

    /// Notes how many of the written bytes the system has not sent yet.
    mutating func answerWaits(_ pending: Int, at now: Duration) {
        guard let before = outgoing?.pending, pending < before else { return }
        outgoing?.pending = pending
        outgoing?.last = now
    }

    /// Notes that an answer was sent completely.
    mutating func answerTaken(at now: Duration) {
        outgoing = nil
        isStreaming = false
        unanswered = max(0, unanswered - 1)
        if case .nothing(_, let isFirst) = incoming {
            incoming = .nothing(since: now, isFirst: isFirst)
        } else if case .head = incoming {
            // It arrived early; its time begins when it can be handled.
            incoming = .head(since: now)
        }
    }

    /// Notes that no further request will be answered.
    mutating func end(at now: Duration) {
        ending = now
    }

    /// The moment at which the client will be too slow, and with what; `nil` while the client need
    /// not act.
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
