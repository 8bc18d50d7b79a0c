import CCurl
import RelayModel

/// The settings that all transfers of one pool have in common.
struct TransferSetup {
    var endpoint: GatewayEndpoint
    var certificate: GatewayCredential.ClientCertificate?
    var settings: CurlGatewaySettings
    var share: CurlSessionShare
}

/// One place for a request: an easy handle with its buffers, which are used again and again.
///
/// It belongs to the gateway's thread. Most options are set once. A request only changes path,
/// headers and body, which are in buffers that stay where they are.
final class CurlTransfer {
    /// The easy handle.
    let easy: UnsafeMutableRawPointer
    /// The request that is open, or `nil`.
    private(set) var waiting: WaitingPush?
    /// The time when the request was handed over.
    private(set) var startedAt = MonotonicInstant(nanoseconds: 0)
    /// Whether libcurl was about to write the request.
    private(set) var isPlaced = false
    /// Whether the request was no longer wanted when libcurl was about to write it.
    private(set) var isWithdrawn = false
    /// Whether the answer is longer than the kept part, and was not read to its end.
    private(set) var isCut = false
    /// How the gateway refused the stream of the request that was last unloaded.
    private(set) var refusal = StreamRefusal.none
    /// Whether the request that was last unloaded was accepted on a stream that was reset at once,
    /// whose answer libcurl has forgotten.
    private var isAcceptedUnread = false
    /// The connection whose sockets it uses.
    private(set) var connection: CurlConnection?
    /// Its index among the open transfers of its connection.
    var seat = 0
    /// The headers that it shares with other transfers.
    private(set) var headers: CurlHeaders?

    private let share: CurlSessionShare
    private let body: TransferBuffer
    private let path: TransferBuffer
    private let own: OwnHeaders
    private let answer = UnsafeMutablePointer<UInt8>.allocate(capacity: answerCapacity)
    private var answerCount = 0
    private let problem = UnsafeMutablePointer<CChar>.allocate(capacity: problemCapacity)

    /// The number of bytes of an answer's body that are kept.
    ///
    /// The gateway's bodies are short JSON texts. A longer one comes from a proxy, and its
    /// beginning is enough. The number is less than `CCURL_ANSWER_LIMIT`, so that a longer body is
    /// detected as cut.
    private static let answerCapacity = 1024
    private static let problemCapacity = Int(CURL_ERROR_SIZE)

    /// Creates a transfer, or returns `nil` if memory is short.
    init?(_ setup: TransferSetup) {
        guard let easy = curl_easy_init() else { return nil }
        self.easy = easy
        share = setup.share
        body = TransferBuffer(capacity: 1024)
        path = TransferBuffer(capacity: 128)
        own = OwnHeaders()
        problem.initialize(repeating: 0, count: Self.problemCapacity)
        setAll(setup)
    }

    deinit {
        curl_easy_cleanup(easy)
        answer.deallocate()
        problem.deallocate()
    }

    /// Prepares to carry `waiting` over `connection`.
    func load(
        _ waiting: WaitingPush, headers: CurlHeaders, over connection: CurlConnection,
        at now: MonotonicInstant, wall: Timestamp
    ) {
        if self.connection !== connection { bind(to: connection) }
        self.waiting = waiting
        self.headers = headers
        startedAt = now
        isPlaced = false
        isWithdrawn = false
        isCut = false
        isAcceptedUnread = false
        answerCount = 0
        problem[0] = 0
        let request = waiting.request
        path.write("/3/device/", request.token.rawValue)
        body.write(request.notification.payload)
        own.write(request, at: wall)
        _ = ccurl_easy_set_text(easy, CURLOPT_REQUEST_TARGET, path.text)
        _ = ccurl_easy_set_pointer(easy, CURLOPT_HTTPHEADER, own.list(before: headers))
        _ = ccurl_easy_set_long(easy, CURLOPT_POSTFIELDSIZE, body.count)
        _ = ccurl_easy_set_pointer(easy, CURLOPT_POSTFIELDS, body.text)
    }

    /// Notes that the request must no longer be sent.
    func withdraw() {
        isWithdrawn = true
    }

    /// Takes the request out after it has ended.
    func unload() -> WaitingPush? {
        defer { waiting = nil }
        let how = Int(ccurl_take_refusal(easy))
        refusal = Self.refusal(how)
        isAcceptedUnread = how == CCURL_STREAM_ACCEPTED
        return waiting
    }

    private static func refusal(_ how: Int) -> StreamRefusal {
        switch how {
        case CCURL_STREAM_REFUSED: .stream
        case CCURL_BEYOND_GOAWAY: .goodbye
        default: ccurl_hears_http2() == 0 ? .unheard : .none
        }
    }

    /// Releases a connection that is closed.
    func unbind() {
        connection = nil
    }

    /// The HTTP status of the answer.
    var status: Int {
        var value = 0
        _ = ccurl_easy_get_long(easy, CURLINFO_RESPONSE_CODE, &value)
        return value
    }

    /// Whether the gateway accepted the request, however its transfer ends.
    var isAccepted: Bool { isPlaced && (isAcceptedUnread || isHTTP2 && status == 200) }

    /// Whether the answer came over HTTP/2.
    var isHTTP2: Bool {
        var value = 0
        _ = ccurl_easy_get_long(easy, CURLINFO_HTTP_VERSION, &value)
        return value == CURL_HTTP_VERSION_2_0
    }

    /// How long the gateway asks to be left alone, at most six hours.
    ///
    /// Newer releases of libcurl have the same limit.
    var retryAfter: Duration? {
        var seconds: Int64 = 0
        _ = ccurl_easy_get_offset(easy, CURLINFO_RETRY_AFTER, &seconds)
        return seconds > 0 ? .seconds(min(seconds, 6 * 3_600)) : nil
    }

    /// The kept part of the answer's body.
    var answerBody: [UInt8] {
        Array(UnsafeBufferPointer(start: answer, count: answerCount))
    }

    /// libcurl's own text about an error, without line breaks.
    var problemText: String {
        String(cString: problem).split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}

// MARK: - What libcurl is told

extension CurlTransfer {
    private func setAll(_ setup: TransferSetup) {
        let settings = setup.settings
        set(CURLOPT_URL, setup.endpoint.url)
        set(CURLOPT_PROTOCOLS_STR, "https")
        set(CURLOPT_PROXY, settings.proxy?.revealed ?? "")
        set(CURLOPT_NOPROXY, "")  // Neither the proxy nor its exceptions come from variables.
        set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        set(CURLOPT_SSL_VERIFYPEER, 1)
        set(CURLOPT_SSL_VERIFYHOST, 2)
        if let file = settings.caFile {
            set(CURLOPT_CAINFO, file)
            _ = ccurl_easy_set_text(easy, CURLOPT_CAPATH, nil)
        }
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_QUICK_EXIT, 1)  // Closing does not wait for a name that nobody answers.
        set(CURLOPT_POST, 1)
        set(CURLOPT_PIPEWAIT, 1)
        set(CURLOPT_BUFFERSIZE, 4096)
        set(CURLOPT_UPLOAD_BUFFERSIZE, 16_384)
        set(CURLOPT_CONNECTTIMEOUT_MS, settings.connectTimeout.wholeMilliseconds)
        set(CURLOPT_TIMEOUT_MS, settings.requestTimeout.wholeMilliseconds)
        set(CURLOPT_MAXAGE_CONN, 7 * 86_400)  // Our own rule ends connections, not libcurl's 118 s.
        set(CURLOPT_DNS_CACHE_TIMEOUT, 0)  // Every connection sees the names' present addresses,
        set(CURLOPT_DNS_SHUFFLE_ADDRESSES, 1)  // in any order.
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_TCP_KEEPIDLE, SocketGuard.idleSeconds)
        set(CURLOPT_TCP_KEEPINTVL, SocketGuard.probeSeconds)
        if let certificate = setup.certificate { set(certificate) }
        _ = ccurl_easy_set_pointer(easy, CURLOPT_SHARE, setup.share.share)
        _ = ccurl_easy_set_pointer(easy, CURLOPT_ERRORBUFFER, problem)
        let place = Unmanaged.passUnretained(self).toOpaque()
        _ = ccurl_easy_set_pointer(easy, CURLOPT_PRIVATE, place)
        _ = ccurl_easy_set_write(easy, Self.readAnswer, place)
        _ = ccurl_easy_set_prereq(easy, Self.prepareToWrite, place)
    }

    private func set(_ option: CURLoption, _ value: Int) {
        _ = ccurl_easy_set_long(easy, option, value)
    }

    private func set(_ option: CURLoption, _ text: String) {
        _ = ccurl_easy_set_text(easy, option, text)
    }

    private func set(_ certificate: GatewayCredential.ClientCertificate) {
        let bytes = Base64.decode(certificate.bytes.revealed) ?? []
        set(CURLOPT_SSLCERTTYPE, certificate.packing.rawValue)
        _ = ccurl_easy_set_blob(easy, CURLOPT_SSLCERT_BLOB, bytes, bytes.count)
        if certificate.packing == .pem {
            _ = ccurl_easy_set_blob(easy, CURLOPT_SSLKEY_BLOB, bytes, bytes.count)
        }
        if !certificate.passphrase.revealed.isEmpty {
            set(CURLOPT_KEYPASSWD, certificate.passphrase.revealed)
        }
    }

    private func bind(to connection: CurlConnection) {
        self.connection = connection
        let place = Unmanaged.passUnretained(connection).toOpaque()
        _ = ccurl_easy_set_open(easy, CurlConnection.openSocket, place)
        _ = ccurl_easy_set_close(easy, CurlConnection.closeSocket, place)
        _ = ccurl_easy_set_sockopt(easy, CurlConnection.guardSocket, place)
    }

    /// Keeps the beginning of an answer's body.
    private static let readAnswer: ccurl_write_function = { bytes, size, count, place in
        guard let bytes, let place else { return size * count }
        let transfer = Unmanaged<CurlTransfer>.fromOpaque(place).takeUnretainedValue()
        let kept = min(size * count, answerCapacity - transfer.answerCount)
        bytes.withMemoryRebound(to: UInt8.self, capacity: kept) {
            transfer.answer.advanced(by: transfer.answerCount).update(from: $0, count: kept)
        }
        transfer.answerCount += kept
        // libcurl 7.88 does not notice the end of an answer that is longer than its buffer. The
        // status is known, so the transfer ends here.
        transfer.isCut = kept < size * count
        return transfer.isCut ? 0 : size * count
    }

    /// Runs when the connection is established and the request is about to be written.
    ///
    /// From here on its outcome can be unknown.
    private static let prepareToWrite: ccurl_prereq_function = { place, _, _, _, _ in
        guard let place else { return CURL_PREREQFUNC_ABORT }
        let transfer = Unmanaged<CurlTransfer>.fromOpaque(place).takeUnretainedValue()
        guard transfer.connection?.admit(transfer) == true else { return CURL_PREREQFUNC_ABORT }
        transfer.isPlaced = true
        return CURL_PREREQFUNC_OK
    }
}
