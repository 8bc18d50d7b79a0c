import CCurl

/// One TCP connection for its whole life: a multi handle that is allowed a single socket.
///
/// Otherwise libcurl would reconnect without a ramp, and silently send requests again. A connection
/// belongs to the gateway's thread, and closing it is final.
final class CurlConnection {
    /// The number of the connection, in the order in which a gateway's connections are created.
    let number: UInt64
    /// The life of the connection.
    var life: ConnectionLife
    /// The transfers that it has used and may use again.
    var free: [CurlTransfer] = []
    /// Why requests cannot be written over the connection although it is established.
    private(set) var objection: PushCause?
    /// Whether TLS was established and a request admitted.
    private(set) var isEstablished = false
    /// Whether any answer came over HTTP/2.
    var isKnownAsHTTP2 = false

    private let multi: UnsafeMutableRawPointer
    private let poll: Int32
    private unowned let owner: any TransferOwner
    private var timerAt: MonotonicInstant?
    /// The transfers that libcurl has.
    ///
    /// Each one knows its index here.
    private var open: [CurlTransfer] = []
    private var watches: [SocketWatch] = []
    private var streams: [curl_socket_t] = []
    private var isCorked = false
    private var isClosed = false
    private var clock: MonotonicInstant

    /// Creates a connection that opens its socket with the first request, or returns `nil` if
    /// memory is short.
    ///
    /// `poll` is the descriptor that the thread waits on.
    init?(
        number: UInt64, width: Int, poll: Int32, owner: any TransferOwner,
        bounds: ConnectionBounds, allowance: Int?, now: MonotonicInstant
    ) {
        guard let multi = curl_multi_init() else { return nil }
        self.number = number
        self.multi = multi
        self.poll = poll
        self.owner = owner
        life = ConnectionLife(bornAt: now, bounds: bounds, allowance: allowance)
        clock = now
        let place = Unmanaged.passUnretained(self).toOpaque()
        _ = ccurl_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1)
        _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, max(100, width))
        _ = ccurl_multi_set_socket(multi, Self.watchSocket, place)
        _ = ccurl_multi_set_timer(multi, Self.setTimer, place)
    }

    deinit {
        precondition(isClosed, "a connection must be closed before it is released")
    }

    /// Hands `transfer`, which is loaded, to libcurl.
    func start(_ transfer: CurlTransfer, at now: MonotonicInstant) {
        clock = now
        cork()
        life.handOver(at: now)
        transfer.seat = open.count
        open.append(transfer)
        curl_multi_add_handle(multi, transfer.easy)
    }

    /// Lets libcurl handle events of a socket, and reports the transfers that ended.
    func act(on socket: Int32, flags: Int32, at now: MonotonicInstant) {
        clock = now
        let isStream = streams.contains(socket)
        cork()
        if flags != CCURL_READ || !isStream || !readThroughOne() {
            var running: Int32 = 0
            let known = flags & (CCURL_READ | CCURL_WRITE | CCURL_ERROR)
            curl_multi_socket_action(multi, socket, known, &running)
            _ = reap()
        }
        if flags & CCURL_HANGUP != 0, isStream, isEstablished {
            life.peerClosed(at: now)
            muteHangup(of: socket)
        }
    }

    /// Runs libcurl's timer if it is due, and reports the transfers that ended.
    func runTimer(at now: MonotonicInstant) {
        guard let due = timerAt, due <= now else { return }
        clock = now
        _ = runTimer()
    }

    /// The time when libcurl's timer is due.
    var wakesAt: MonotonicInstant? { timerAt }

    /// Takes `transfer` back from libcurl before it has ended.
    func abandon(_ transfer: CurlTransfer) {
        leave(transfer)
        curl_multi_remove_handle(multi, transfer.easy)
    }

    /// Closes the socket and frees everything.
    ///
    /// All transfers must have ended or been abandoned.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        timerAt = nil
        uncork()
        for watch in watches where watch.applied != 0 { ccurl_poll_forget(poll, watch.socket) }
        watches.removeAll()
        curl_multi_cleanup(multi)
        // Discards a GOAWAY that the cleanup read, so that no other connection takes it for its
        // own.
        _ = ccurl_take_goodbye()
    }

    private func runTimer() -> Endings {
        timerAt = nil
        cork()
        var running: Int32 = 0
        curl_multi_socket_action(multi, curl_socket_t(-1), 0, &running)
        return reap()
    }

    private func reap() -> Endings {
        var left: Int32 = 0
        var endings = Endings()
        while let message = curl_multi_info_read(multi, &left) {
            guard let easy = message.pointee.easy_handle else { continue }
            let code = ccurl_message_result(message)
            var place: UnsafeMutableRawPointer?
            _ = ccurl_easy_get_pointer(easy, CURLINFO_PRIVATE, &place)
            guard let place else { continue }
            let transfer = Unmanaged<CurlTransfer>.fromOpaque(place).takeUnretainedValue()
            leave(transfer)
            curl_multi_remove_handle(multi, easy)
            if code == CURLE_OK { endings.answers += 1 } else { endings.errors += 1 }
            owner.transferEnded(transfer, code: code.rawValue, on: self)
        }
        // After a GOAWAY, libcurl would hold new requests back until the open streams have ended.
        if ccurl_take_goodbye() != 0 { life.closing(at: clock) }
        return endings
    }

    private func leave(_ transfer: CurlTransfer) {
        let last = open.removeLast()
        guard last !== transfer else { return }
        last.seat = transfer.seat
        open[transfer.seat] = last
    }
}

// MARK: - Reading

/// The numbers of transfers that ended in a call.
private struct Endings {
    var answers = 0
    var errors = 0
}

extension CurlConnection {
    /// The number of open transfers below which visiting all of them is cheap.
    private static let crowd = 8
    /// The maximum number of timer calls for one reading.
    ///
    /// A call of libcurl's timer handles only what was due when it began.
    private static let laps = 4

    /// Reads what has arrived by visiting one transfer.
    ///
    /// Returns whether there were answers, and no errors.
    ///
    /// When libcurl is told that a socket is readable, it visits every transfer of the connection,
    /// with a system call for each. A single transfer can read everything, and libcurl then marks
    /// those that got an answer. Pausing and resuming a transfer makes only that one read.
    private func readThroughOne() -> Bool {
        guard open.count >= Self.crowd, let reader = open.last, reader.isPlaced else {
            return false
        }
        curl_easy_pause(reader.easy, CURLPAUSE_SEND)
        curl_easy_pause(reader.easy, CURLPAUSE_CONT)
        var answers = 0
        for _ in 0..<Self.laps {
            guard let due = timerAt, due <= clock else { break }
            let endings = runTimer()
            answers += endings.answers
            if endings.errors > 0 { return false }
        }
        return answers > 0
    }
}

/// The owner of transfers, which is told when they end.
protocol TransferOwner: AnyObject {
    /// Handles that `transfer` ended with libcurl's `code`.
    ///
    /// Its answer can be read during the call.
    func transferEnded(_ transfer: CurlTransfer, code: UInt32, on connection: CurlConnection)
    /// Notes that the connection is established.
    func connectionEstablished(_ connection: CurlConnection)
    /// Returns whether `request`, which is about to be written, is still to be sent.
    func wants(_ request: PushRequest) -> Bool
}

/// A socket that libcurl wants watched.
private struct SocketWatch {
    var socket: curl_socket_t
    /// The events that libcurl wants, as flags for the poll.
    var wanted: Int32
    /// The events that the poll was told, or 0 if it does not know the socket.
    var applied: Int32
    /// Whether a closed peer has been seen, so that the poll need not report it again and again.
    var isMuted = false
}

// MARK: - Sockets

extension CurlConnection {
    /// Tells the poll which events libcurl wants, once a turn instead of once a request.
    func applyWatches() {
        for index in watches.indices where watches[index].wanted != watches[index].applied {
            let watch = watches[index]
            let key = number << 32 | UInt64(UInt32(bitPattern: watch.socket))
            _ = ccurl_poll_watch(poll, watch.socket, watch.wanted, key)
            watches[index].applied = watch.wanted
        }
    }

    /// Sends the data that was held back, so that the requests of a turn travel in few packets.
    func uncork() {
        guard isCorked else { return }
        isCorked = false
        for stream in streams { ccurl_socket_cork(stream, 0) }
    }

    private func cork() {
        guard !isCorked, !streams.isEmpty else { return }
        isCorked = true
        for stream in streams { ccurl_socket_cork(stream, 1) }
    }

    /// Decides whether `transfer` may be written, when the connection is established.
    ///
    /// If the gateway takes few streams at a time, the other transfers wait within libcurl until
    /// then.
    func admit(_ transfer: CurlTransfer) -> Bool {
        guard stands(transfer) else { return false }
        guard let waiting = transfer.waiting, owner.wants(waiting.request) else {
            transfer.withdraw()
            return false
        }
        return true
    }

    private func stands(_ transfer: CurlTransfer) -> Bool {
        guard objection == nil else { return false }
        guard !isEstablished else { return true }
        if ccurl_negotiated_http2(transfer.easy) == 0 {
            objection = "the gateway does not speak HTTP/2 (ALPN did not choose h2)"
            return false
        }
        isEstablished = true
        life.establish(at: clock)
        owner.connectionEstablished(self)
        return true
    }

    private func muteHangup(of socket: curl_socket_t) {
        for index in watches.indices where watches[index].socket == socket {
            watches[index].isMuted = true
            watches[index].wanted &= ~CCURL_HANGUP
        }
    }

    /// Opens the only socket.
    ///
    /// Until one address answers, several may be tried.
    static let openSocket: ccurl_open_function = { place, _, address in
        guard let place, let address else { return curl_socket_t(-1) }
        let connection = Unmanaged<CurlConnection>.fromOpaque(place).takeUnretainedValue()
        guard !connection.isEstablished else {
            connection.life.closing(at: connection.clock)
            return curl_socket_t(-1)
        }
        let socket = ccurl_socket_open(address)
        if socket >= 0 { connection.streams.append(socket) }
        return socket
    }

    /// Forgets a socket and closes it.
    static let closeSocket: ccurl_close_function = { place, socket in
        if let place {
            let connection = Unmanaged<CurlConnection>.fromOpaque(place).takeUnretainedValue()
            connection.streams.removeAll { $0 == socket }
            connection.watches.removeAll { $0.socket == socket }
        }
        ccurl_socket_close(socket)
        return 0
    }

    /// Makes the kernel detect a dead peer.
    static let guardSocket: ccurl_sockopt_function = { _, socket, _ in
        ccurl_socket_guard(
            socket, UInt32(SocketGuard.userTimeout.wholeMilliseconds), SocketGuard.probes)
        return Int32(CURL_SOCKOPT_OK)
    }

    /// Notes which events libcurl wants.
    private static let watchSocket: ccurl_socket_function = { _, socket, what, place, _ in
        guard let place else { return 0 }
        let connection = Unmanaged<CurlConnection>.fromOpaque(place).takeUnretainedValue()
        connection.note(socket, what)
        return 0
    }

    /// Notes when libcurl's timer is due.
    private static let setTimer: ccurl_timer_function = { _, milliseconds, place in
        guard let place else { return 0 }
        let connection = Unmanaged<CurlConnection>.fromOpaque(place).takeUnretainedValue()
        connection.timerAt =
            milliseconds < 0
            ? nil : connection.clock.advanced(by: .milliseconds(Int64(milliseconds)))
        return 0
    }

    private func note(_ socket: curl_socket_t, _ what: Int32) {
        let index =
            watches.firstIndex { $0.socket == socket }
            ?? {
                watches.append(SocketWatch(socket: socket, wanted: 0, applied: 0))
                return watches.count - 1
            }()
        // While nothing is open, libcurl does not watch the socket, but the relay wants to know if
        // the peer goes away.
        var wanted: Int32 =
            streams.contains(socket) && !watches[index].isMuted ? CCURL_HANGUP : 0
        if what != CURL_POLL_REMOVE {
            if what & CURL_POLL_IN != 0 { wanted |= CCURL_READ }
            if what & CURL_POLL_OUT != 0 { wanted |= CCURL_WRITE }
            watches[index].wanted = wanted
        } else if wanted != 0 {
            watches[index].wanted = wanted
        } else {
            if watches[index].applied != 0 { ccurl_poll_forget(poll, socket) }
            watches.remove(at: index)
        }
    }
}

/// The settings by which the kernel detects a dead peer.
///
/// After 10 s of silence it probes twice, 4 s apart. Data that is not acknowledged for 15 s ends
/// the connection.
///
/// All of these stay below the 20 s within which a half-open connection must be detected.
enum SocketGuard {
    static let idleSeconds = 10
    static let probeSeconds = 4
    static let probes: Int32 = 2
    static let userTimeout = Duration.seconds(15)
}
