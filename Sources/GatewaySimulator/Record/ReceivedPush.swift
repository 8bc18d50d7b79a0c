#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// One push as the gateway received it, and what became of it.
public struct ReceivedPush: Sendable, Hashable {
    /// Its number in the order of arrival over all connections, from 1.
    public var number: Int
    /// The number of its connection, from 1.
    public var connection: Int
    /// The number of its HTTP/2 stream.
    public var stream: Int
    /// When its last byte had arrived.
    public var receivedAt: Date
    /// The header block in the order it was sent, with the pseudo-headers.
    public var headers: [HeaderField]
    /// The device token of the path, in lower case; empty if the path has none.
    public var deviceToken: String
    /// The bytes of the body, at most 64 kB of it.
    public var payload: [UInt8]
    /// The `apns-id` of the answer: the one that was sent, or one that the gateway made up because
    /// it was missing or malformed.
    public var apnsID: String
    /// What the gateway decided to do.
    public var answer: GatewayAnswer
    /// Why it was refused, in words; `nil` unless a check failed.
    public var explanation: String?
    /// Whether the gateway has taken the push on: a device would get it.
    public var isAccepted: Bool
    /// Whether an answer has been written to the connection.
    public var isAnswered: Bool

    /// For tests of what reads a record; the simulator makes its own.
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

    /// The value of the first header `name`, given in lower case.
    public func header(_ name: String) -> String? {
        headers[name]
    }
}

/// What the gateway counted for one `apns-id`.
public struct PushTally: Sendable, Hashable {
    /// Pushes that arrived whole.
    public var received = 0
    /// Those that were taken on; more than one means that a device would have got it twice.
    public var accepted = 0
    /// Those that an answer was written for.
    public var answered = 0
    /// Acceptances beyond the first.
    public var duplicates: Int { max(0, accepted - 1) }

    /// Nothing counted yet.
    public init() {}
}

/// What the gateway counted since it was started.
public struct GatewayTotals: Sendable, Hashable {
    /// Connections whose TLS handshake succeeded.
    public var connections = 0
    /// Connections that are open.
    public var openConnections = 0
    /// Pushes that arrived whole.
    public var received = 0
    /// Pushes that were taken on.
    public var accepted = 0
    /// Pushes that an answer was written for.
    public var answered = 0
    /// Acceptances beyond the first of the same `apns-id`.
    public var duplicates = 0
    /// Streams that were opened beyond the stream limit.
    public var streamLimitViolations = 0
    /// Those of them that came before the sender had acknowledged the limit, as is legal (RFC 9113
    /// §6.5.3).
    public var violationsBeforeAcknowledgement = 0
    /// RST_STREAM frames that senders sent for pushes that had no answer yet.
    public var abandonedStreams = 0
    /// GOAWAY frames that the gateway sent.
    public var goAwaysSent = 0
    /// Connections that ended by an error of HTTP/2, the sender's or the gateway's own.
    public var protocolErrors = 0
    /// Refusals by reason.
    public var refusals: [String: Int] = [:]

    /// Nothing counted yet.
    public init() {}
}

/// The gateway saw a sender open more streams than it allowed.
public struct StreamLimitViolation: Sendable, Hashable {
    /// The number of the connection.
    public var connection: Int
    /// The number of the stream that was too many.
    public var stream: Int
    /// The open streams, that one included.
    public var openStreams: Int
    /// The limit that was announced last.
    public var limit: Int
    /// Whether the sender had acknowledged that limit.
    public var isAcknowledged: Bool

    /// For tests of what reads a record; the simulator makes its own.
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

/// The gateway did not see in time what it was asked to wait for.
public struct GatewayWaitTimeout: Error, CustomStringConvertible {
    /// What had been counted when the time was over.
    public var totals: GatewayTotals

    /// The state in words.
    public var description: String {
        "the simulated gateway waited in vain; so far: \(totals)"
    }
}
