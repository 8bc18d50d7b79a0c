import CCurl

/// How the gateway refused the stream of a request.
///
/// A refusal proves that the gateway did not process the request (RFC 9113 §8.7).
enum StreamRefusal: Sendable, Hashable {
    /// The gateway did not refuse it.
    case none
    /// The gateway reset this stream (REFUSED_STREAM): it takes fewer at a time.
    case stream
    /// The gateway takes no more requests on the connection, and the stream is beyond the last one
    /// (GOAWAY).
    case goodbye
    /// This is unknown, because libcurl's HTTP/2 library cannot be observed.
    case unheard

    /// Whether it proves that the request was not processed.
    var isProof: Bool { self == .stream || self == .goodbye }
}

/// The meaning of the end of one transfer, judged by libcurl's code and additional evidence.
///
/// libcurl reports whether a transfer worked. A sender must know whether the request can have been
/// processed, which depends on whether libcurl was about to write it (`CURLOPT_PREREQFUNCTION`).
struct TransferVerdict: Sendable, Hashable {
    /// What happened to the request.
    enum Fate: Sendable, Hashable {
        /// There is an answer with a status.
        case answered
        /// The status says that the request was accepted, although the answer is incomplete.
        case accepted
        /// The request was not processed, and this connection will not process it.
        ///
        /// Give it to another one.
        case moveOn
        /// The request was certainly not processed.
        case notSent
        /// The request may have been processed.
        case unknown
    }

    /// What happened to the request.
    var fate: Fate
    /// How the request ended for the connection.
    ///
    /// It is meaningless for ``Fate/answered``.
    var ending: ConnectionLife.Ending
    /// Whether the gateway takes fewer requests at a time than are open.
    ///
    /// It refused or reset a stream, and not the whole connection.
    var isCrowded: Bool

    /// What is known about a transfer that ended.
    struct Evidence: Sendable, Hashable {
        /// The result code of libcurl.
        var code: UInt32
        /// Whether libcurl was about to write this request, or wrote it.
        var isPlaced: Bool
        /// Whether any request was ever about to be written on this connection.
        var isConnectionEstablished: Bool
        /// How the stream of the request was refused.
        var refusal = StreamRefusal.none
        /// Whether the status that was read says that the gateway accepted the request.
        var isAccepted = false
    }

    /// Judges the end of a transfer (libcurl: `libcurl-errors`).
    init(_ evidence: Evidence) {
        let code = CURLcode(rawValue: evidence.code)
        isCrowded = Self.isCrowded(code, evidence)
        switch (code, evidence.isPlaced) {
        case (CURLE_OK, _):
            (fate, ending) = (.answered, .accepted)
        case (_, true) where evidence.refusal.isProof:
            (fate, ending) = (.moveOn, .broke(.closing))
        case (CURLE_OPERATION_TIMEDOUT, true):
            (fate, ending) = (.unknown, .timedOut)
        case (CURLE_HTTP2_STREAM, true):
            (fate, ending) = (.unknown, .failed)
        case (CURLE_COULDNT_CONNECT, true):
            // The gateway closed the connection. libcurl wanted to send the request again on a
            // second socket, and got none.
            (fate, ending) = (.unknown, .broke(.closing))
        case (_, true):
            (fate, ending) = (.unknown, .broke(.broken))
        case (CURLE_OPERATION_TIMEDOUT, false) where evidence.isConnectionEstablished:
            (fate, ending) = (.notSent, .timedOut)
        case (_, false) where evidence.isConnectionEstablished:
            (fate, ending) = (.moveOn, .broke(.closing))
        case (_, false):
            (fate, ending) = (.notSent, .broke(.connectFailed))
        }
        if fate == .unknown, evidence.isAccepted { (fate, isCrowded) = (.accepted, false) }
    }

    private static func isCrowded(_ code: CURLcode, _ evidence: Evidence) -> Bool {
        guard evidence.isPlaced, code != CURLE_OK else { return false }
        return switch evidence.refusal {
        case .stream: true
        case .goodbye: false
        case .none: code == CURLE_HTTP2_STREAM
        // It may have been a refusal or the end of the connection. Fewer at a time are safe.
        case .unheard: code == CURLE_HTTP2_STREAM || code == CURLE_COULDNT_CONNECT
        }
    }
}

/// The meanings of libcurl's codes, for causes that people read.
enum TransferCause {
    /// Returns the meaning of `code`.
    ///
    /// `detail` is libcurl's own text with addresses and times, if there is one.
    ///
    /// On an established connection, libcurl reports that it could not connect if the gateway takes
    /// no more requests (GOAWAY), because it would then use a second socket. For a refused stream
    /// (`isRefused`) it reports a reset, or the same error if its HTTP/2 library cannot be
    /// observed.
    static func text(
        code: UInt32, isEstablished: Bool, isRefused: Bool = false, detail: String
    ) -> PushCause {
        let isClosing = isEstablished && CURLcode(rawValue: code) == CURLE_COULDNT_CONNECT
        if isRefused || isClosing {
            return PushCause("the gateway closes the connection or refused the stream")
        }
        return PushCause(words[code] ?? "libcurl's error \(code)", detail: detail)
    }

    private static let words: [UInt32: String] = [
        CURLE_COULDNT_RESOLVE_PROXY.rawValue: "the proxy's name cannot be resolved",
        CURLE_COULDNT_RESOLVE_HOST.rawValue: "the gateway's name cannot be resolved",
        CURLE_COULDNT_CONNECT.rawValue: "no connection",
        CURLE_HTTP2.rawValue: "the HTTP/2 connection failed",
        CURLE_PARTIAL_FILE.rawValue: "the connection was closed before the answer was complete",
        CURLE_OPERATION_TIMEDOUT.rawValue: "no answer in time",
        CURLE_SSL_CONNECT_ERROR.rawValue: "the TLS handshake failed",
        CURLE_ABORTED_BY_CALLBACK.rawValue: "the connection is not usable",
        CURLE_GOT_NOTHING.rawValue: "the connection was closed without an answer",
        CURLE_SEND_ERROR.rawValue: "sending failed",
        CURLE_RECV_ERROR.rawValue: "receiving failed",
        CURLE_SSL_CERTPROBLEM.rawValue: "the client certificate cannot be used",
        CURLE_PEER_FAILED_VERIFICATION.rawValue: "the gateway's certificate is not trusted",
        CURLE_SEND_FAIL_REWIND.rawValue: "the request cannot be sent a second time",
        CURLE_SSL_CACERT_BADFILE.rawValue: "the file of trusted certificates cannot be read",
        CURLE_HTTP2_STREAM.rawValue: "the gateway reset the stream",
    ]
}
