#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The gateway's answer to one push.
public enum GatewayAnswer: Sendable, Hashable {
    /// Status 200 without a body.
    case accept
    /// A status with a reason, as APNs words it.
    case refuse(GatewayRefusal)
    /// A status with any body, such as a proxy between sender and gateway would send.
    case raw(status: Int, contentType: String, body: String)
    /// No answer, ever. The connection stays open and other pushes are answered.
    case silence
    /// RST_STREAM instead of an answer.
    case resetStream(StreamReset)
    /// GOAWAY for the whole connection.
    case goAway(GoAway)
    /// The TCP connection ends without any HTTP/2 frame.
    case closeConnection(ConnectionEnd)
    /// From now on, nothing on this connection is read or answered: a black hole.
    case freezeConnection
    /// Status 200, preceded by SETTINGS that announce another stream limit.
    case acceptLimitingStreams(to: Int)

    /// Whether a gateway that gives this answer has accepted the push, unless a script says
    /// otherwise.
    ///
    /// A stream that was refused, or that is above the last stream of a GOAWAY, was not processed
    /// (RFC 9113 §§6.8 and 8.7). After another kind of reset or a closed connection, a gateway may
    /// have processed the push. The simulator counts it as accepted.
    public var isAcceptedByDefault: Bool {
        switch self {
        case .accept, .acceptLimitingStreams, .closeConnection: true
        case .resetStream(let reset): reset != .refused
        case .goAway(let goAway): goAway.lastStream == .highest
        case .raw(let status, _, _): status == 200
        case .refuse, .silence, .freezeConnection: false
        }
    }

    /// The HTTP status that is sent; `nil` if none is.
    public var status: Int? {
        switch self {
        case .accept, .acceptLimitingStreams: 200
        case .refuse(let refusal): refusal.status
        case .raw(let status, _, _): status
        case .goAway(let goAway):
            goAway.lastStream == .highest && goAway.ending != .close ? 200 : nil
        case .silence, .resetStream, .closeConnection, .freezeConnection: nil
        }
    }
}

/// A refusal in APNs' form: a status, and a JSON body with the reason.
public struct GatewayRefusal: Sendable, Hashable {
    /// The HTTP status, 400 to 599.
    public var status: Int
    /// One of APNs' reasons, or any other text.
    public var reason: String
    /// When the device token became invalid.
    ///
    /// APNs sends it in milliseconds, and with status 410 only.
    public var timestamp: Date?
    /// The value of a `retry-after` header, in seconds.
    public var retryAfter: Int?

    /// Creates a refusal.
    ///
    /// Without `timestamp` the body has no such member, and without `retryAfter` the answer has no
    /// such header.
    public init(status: Int, reason: String, timestamp: Date? = nil, retryAfter: Int? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
        self.retryAfter = retryAfter
    }

    /// The JSON text of the body.
    public var body: String {
        let reason = JSONText.quoted(reason)
        guard let timestamp else { return "{\"reason\":\(reason)}" }
        let milliseconds = Int64((timestamp.timeIntervalSince1970 * 1000).rounded())
        return "{\"reason\":\(reason),\"timestamp\":\(milliseconds)}"
    }
}

/// The kinds of RST_STREAM.
public enum StreamReset: String, Sendable, Hashable, CaseIterable {
    /// REFUSED_STREAM: the push was not processed and may be sent again at once.
    case refused
    /// CANCEL: the sender cannot know whether the push was processed.
    case cancelled
    /// INTERNAL_ERROR: the sender cannot know whether the push was processed.
    case internalError
}

/// How a TCP connection ends.
public enum ConnectionEnd: String, Sendable, Hashable, CaseIterable {
    /// An orderly end: TLS close_notify and FIN.
    case finish
    /// RST, as after a crash or from a firewall.
    case reset
}

/// A GOAWAY and what follows it.
public struct GoAway: Sendable, Hashable {
    /// The streams that the gateway still takes responsibility for.
    public enum LastStream: String, Sendable, Hashable, CaseIterable {
        /// All streams opened so far, including that of this push.
        case highest
        /// The streams before this push. This push and all later ones count as not processed.
        case beforeThis
    }

    /// What happens to the connection after the GOAWAY.
    public enum Ending: String, Sendable, Hashable, CaseIterable {
        /// The open streams are answered, then the connection is closed.
        case drain
        /// The connection is closed at once; open streams stay unanswered.
        case close
        /// The open streams are answered, and the connection stays open until the sender leaves.
        case keepOpen
    }

    /// The error codes that a GOAWAY can carry.
    public enum ErrorCode: String, Sendable, Hashable, CaseIterable {
        /// NO_ERROR: a planned shutdown.
        case noError
        /// INTERNAL_ERROR.
        case internalError
        /// ENHANCE_YOUR_CALM: the sender generates excessive load.
        case enhanceYourCalm
    }

    /// The streams that the gateway still takes responsibility for.
    public var lastStream: LastStream
    /// What happens to the connection after the GOAWAY.
    public var ending: Ending
    /// The error code.
    public var errorCode: ErrorCode
    /// The reason in the JSON debug data, as APNs sends it; `nil` means no debug data.
    public var reason: String?

    /// Creates a GOAWAY.
    ///
    /// The defaults describe a graceful one.
    public init(
        lastStream: LastStream = .highest, ending: Ending = .drain,
        errorCode: ErrorCode = .noError, reason: String? = "Shutdown"
    ) {
        self.lastStream = lastStream
        self.ending = ending
        self.errorCode = errorCode
        self.reason = reason
    }
}
