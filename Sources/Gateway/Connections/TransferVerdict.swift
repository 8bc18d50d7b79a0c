import CCurl

/// How the gateway refused the stream of a request, which proves that it did not process it (RFC
/// 9113 §8.7).
enum StreamRefusal: Sendable, Hashable {
    /// It did not.
    case none
    /// It reset this stream (REFUSED_STREAM): it takes fewer at a time.
    case stream
    /// It takes no more on the connection, and the stream is beyond the last one (GOAWAY).
    case goodbye
    /// Nobody knows: libcurl's HTTP/2 library cannot be listened to.
    case unheard

    /// Whether it is proven that the request was not processed.
    var isProof: Bool { self == .stream || self == .goodbye }
}

/// What the end of one transfer means, judged by libcurl's code and what is known beside it.
///
/// libcurl answers whether a transfer worked; a sender must know whether the request can have been
/// processed. The line is whether libcurl was about to write it (`CURLOPT_PREREQFUNCTION`).
struct TransferVerdict: Sendable, Hashable {
    /// What becomes of the request.
    enum Fate: Sendable, Hashable {
        /// There is an answer with a status.
        case answered
        /// Its status says that it was accepted, although the answer did not come to its end.
        case accepted
        /// It was not processed, and this connection will not do it: give it to another one.
        case moveOn
        /// It was certainly not processed.
        case notSent
        /// It may have been processed.
        case unknown
    }

    /// What becomes of the request.
    var fate: Fate
    /// What becomes of the connection; meaningless for ``Fate/answered``.
    var ending: ConnectionLife.Ending
    /// Whether the gateway takes fewer requests at a time than are open: it refused or reset a
    /// stream, and not the whole connection.
    var isCrowded: Bool

    /// What is known about a transfer that ended.
    struct Evidence: Sendable, Hashable {
        /// libcurl's code.
        var code: UInt32
        /// Whether libcurl was about to write this request, or did.
        var isPlaced: Bool
        /// Whether any request was ever placed on this connection.
        var isConnectionEstablished: Bool
        /// How its stream was refused.
        var refusal = StreamRefusal.none
        /// Whether the status that was read says that the gateway accepted it.
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
            // The gateway closed the connection, libcurl wanted to send it again on a second
            // socket, and was not given one.
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
        // It may have been a refusal or the connection's end; few at a time are safe.
        case .unheard: code == CURLE_HTTP2_STREAM || code == CURLE_COULDNT_CONNECT
        }
    }
}

/// libcurl's codes in words, for causes that people read.
enum TransferCause {
    /// What `code` means; `detail` is libcurl's own text, where it left one: addresses, times.
    ///
    /// On a connection that stood, libcurl says that it could not connect when the gateway takes no
    /// more (GOAWAY): it would go to a second socket then. Of a stream that `isRefused` it says
    /// that it was reset, or the same where it is not told otherwise.
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
