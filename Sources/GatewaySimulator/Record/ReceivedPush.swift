#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// One push as the gateway received it, and how the gateway handled it.
public struct ReceivedPush: Sendable, Hashable {
    /// The number in the order of arrival over all connections, from 1.
    public var number: Int
    /// The number of the connection, from 1.
    public var connection: Int
    /// The number of the HTTP/2 stream.
    public var stream: Int
    /// When its last byte had arrived.
    public var receivedAt: Date
    /// The header block in the order of arrival, including pseudo-headers.
    public var headers: [HeaderField]
    /// The device token of the path, in lower case; empty if the path has none.
    public var deviceToken: String
    /// The bytes of the body, cut at 64 KiB.
    public var payload: [UInt8]
    /// The `apns-id` of the answer: the one that was sent, or a new one if that was missing or
    /// malformed.
    public var apnsID: String
    /// The answer that the gateway decided on.
    public var answer: GatewayAnswer
    /// Why a check refused the push, in words; `nil` if no check did.
    public var explanation: String?
    /// Whether the gateway has accepted the push, so that a device would get it.
    public var isAccepted: Bool
    /// Whether an answer has been written to the connection.
    public var isAnswered: Bool

    /// Creates a push for tests of code that reads the record.
    ///
    /// The simulator creates its own.
    public init(
        number: Int, connection: Int, stream: Int, receivedAt: Date, headers: [HeaderField],
        deviceToken: String, payload: [UInt8], apnsID: String, answer: GatewayAnswer,
        explanation: String? = nil, isAccepted: Bool, isAnswered: Bool
    ) {
        self.number = number
        self.connection = connection
        self.stream = stream
        self.receivedAt = receivedAt
        self.headers = headers
        self.deviceToken = deviceToken
        self.payload = payload
        self.apnsID = apnsID
        self.answer = answer
        self.explanation = explanation
        self.isAccepted = isAccepted
        self.isAnswered = isAnswered
    }

    /// Returns the value of the first header called `name`, which must be in lower case.
    public func header(_ name: String) -> String? {
        headers[name]
    }
}

/// What the gateway counted for one `apns-id`.
public struct PushTally: Sendable, Hashable {
    /// Pushes that arrived completely.
    public var received = 0
    /// Pushes that were accepted.
    ///
    /// More than one means that a device would have got it twice.
    public var accepted = 0
    /// Pushes whose answer was written.
    public var answered = 0
    /// Acceptances beyond the first.
    public var duplicates: Int { max(0, accepted - 1) }

    /// Creates a tally of zeros.
    public init() {}
}

/// What the gateway counted since it was started.
public struct GatewayTotals: Sendable, Hashable {
    /// Connections whose TLS handshake succeeded.
    public var connections = 0
    /// Connections that are open.
    public var openConnections = 0
    /// Pushes that arrived completely.
    public var received = 0
    /// Pushes that were accepted.
    public var accepted = 0
    /// Pushes whose answer was written.
    public var answered = 0
    /// Acceptances beyond the first of the same `apns-id`.
    public var duplicates = 0
    /// Streams that were opened beyond the stream limit.
    public var streamLimitViolations = 0
    /// Violations before the sender had acknowledged the limit, which are legal (RFC 9113 §6.5.3).
    public var violationsBeforeAcknowledgement = 0
    /// RST_STREAM frames from senders for pushes without an answer.
    public var abandonedStreams = 0
    /// GOAWAY frames that the gateway sent.
    public var goAwaysSent = 0
    /// Connections that ended with an HTTP/2 error, the sender's or the gateway's own.
    public var protocolErrors = 0
    /// Refusals by reason.
    public var refusals: [String: Int] = [:]

    /// Creates totals of zero.
    public init() {}
}

/// A sender opened more streams than the gateway allowed.
public struct StreamLimitViolation: Sendable, Hashable {
    /// The number of the connection.
    public var connection: Int
    /// The number of the stream that exceeded the limit.
    public var stream: Int
    /// The open streams, including the one that exceeded the limit.
    public var openStreams: Int
    /// The limit that was announced last.
    public var limit: Int
    /// Whether the sender had acknowledged that limit.
    public var isAcknowledged: Bool

    /// Creates a violation for tests of code that reads the record.
    ///
    /// The simulator creates its own.
    public init(
        connection: Int, stream: Int, openStreams: Int, limit: Int, isAcknowledged: Bool
    ) {
        self.connection = connection
        self.stream = stream
        self.openStreams = openStreams
        self.limit = limit
        self.isAcknowledged = isAcknowledged
    }
}

/// The condition of a wait did not come true in time.
public struct GatewayWaitTimeout: Error, CustomStringConvertible {
    /// The totals at the timeout.
    public var totals: GatewayTotals

    /// The totals in words.
    public var description: String {
        "the simulated gateway did not receive in time what was waited for; so far: \(totals)"
    }
}
