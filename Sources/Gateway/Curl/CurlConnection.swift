import CCurl

/// One TCP connection for its whole life: a multi handle that is allowed a single socket.
///
/// libcurl would otherwise reconnect without a ramp and send requests again without a word. It
/// lives on the gateway's thread; closing it is final.
final class CurlConnection {
    /// Numbers the connections of a gateway in the order of their births.
    let number: UInt64
    /// Where it stands.
    var life: ConnectionLife
    /// The places that it has used and may use again.
    var free: [CurlTransfer] = []
    /// Why requests cannot be written over it although it stands.
    private(set) var objection: PushCause?
    /// Whether TLS was up and a request admitted.
    private(set) var isEstablished = false
    /// Whether any answer was seen to come over HTTP/2.
    var isKnownAsHTTP2 = false

    private let multi: UnsafeMutableRawPointer
    private let poll: Int32
    private unowned let owner: any TransferOwner
    private var timerAt: MonotonicInstant?
    /// The transfers that libcurl has; each knows its place in the row.
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

    /// Lets libcurl act on what happened to a socket, and reports the transfers that ended.
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

    /// When libcurl's timer is due.
    var wakesAt: MonotonicInstant? { timerAt }

    /// Takes `transfer` back from libcurl before it has ended.
    func abandon(_ transfer: CurlTransfer) {
        leave(transfer)
        curl_multi_remove_handle(multi, transfer.easy)
    }

    /// Closes the socket and gives everything back; all transfers must have ended or been
    /// abandoned.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        timerAt = nil
        uncork()
        for watch in watches where watch.applied != 0 { ccurl_poll_forget(poll, watch.socket) }
        watches.removeAll()
        curl_multi_cleanup(multi)
        // What that read is no other connection's.
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
        // While streams are open libcurl keeps what it is given until they have ended.
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

/// How the transfers of a call ended.
private struct Endings {
    var answers = 0
    var errors = 0
}

extension CurlConnection {
    /// Below this many open transfers, visiting all of them is cheap.
    private static let crowd = 8
    /// A call of libcurl's timer looks only at what was due when it began.
    private static let laps = 4

    /// Reads what has arrived by visiting one transfer; returns whether answers came of it, and
    /// nothing else.
    ///
    /// Told that a socket is readable, libcurl visits every transfer of the connection, with a
    /// system call each. One of them reads everything, and libcurl then marks those that got an
    /// answer. Pausing and resuming is how a single transfer is told to look.
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

/// Whoever wants to know that a transfer ended.
protocol TransferOwner: AnyObject {
    /// `transfer` ended with libcurl's `code`; its answer can be read during the call.
    func transferEnded(_ transfer: CurlTransfer, code: UInt32, on connection: CurlConnection)
    /// The connection stands.
    func connectionEstablished(_ connection: CurlConnection)
    /// Whether `request`, which is about to be written, is still to be sent.
    func wants(_ request: PushRequest) -> Bool
}

/// A socket that libcurl wants watched.
private struct SocketWatch {
    var socket: curl_socket_t
    /// What libcurl wants, as flags for the poll.
    var wanted: Int32
    /// What the poll was told; 0 if it does not know the socket.
    var applied: Int32
    /// Whether a closed peer has been seen, so that it need not be told again and again.
    var isMuted = false
}

// MARK: - Sockets

extension CurlConnection {
    /// Tells the poll what libcurl wants, once a turn instead of once a request.
    func applyWatches() {
        for index in watches.indices where watches[index].wanted != watches[index].applied {
            let watch = watches[index]
            let key = number << 32 | UInt64(UInt32(bitPattern: watch.socket))
            _ = ccurl_poll_watch(poll, watch.socket, watch.wanted, key)
            watches[index].applied = watch.wanted
        }
    }

    /// Lets go what was held back, so that a turn's requests travel in few packets.
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

    /// Decides whether `transfer` may be written, when the connection stands.
    ///
    /// Of a gateway that takes few at a time the others wait within libcurl until then.
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

    /// Opens the one socket. (Several addresses may be tried until one answers.)
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

    /// Makes the kernel find a dead peer.
    static let guardSocket: ccurl_sockopt_function = { _, socket, _ in
        ccurl_socket_guard(
            socket, UInt32(SocketGuard.userTimeout.wholeMilliseconds), SocketGuard.probes)
        return Int32(CURL_SOCKOPT_OK)
    }

    /// Notes what libcurl wants watched.
    private static let watchSocket: ccurl_socket_function = { _, socket, what, place, _ in
        guard let place else { return 0 }
        let connection = Unmanaged<CurlConnection>.fromOpaque(place).takeUnretainedValue()
        connection.note(socket, what)
        return 0
    }

    /// Notes when libcurl wants to be called.
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
        // While nothing is open libcurl does not look, but a peer that goes away is worth knowing.
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

/// How the kernel finds a peer that is gone: after 10 s of silence it asks twice, 4 s apart, and
/// data that nobody acknowledges for 15 s ends the connection.
///
/// All of it stays below the 20 s within which a half-open connection must be found.
enum SocketGuard {
    static let idleSeconds = 10
    static let probeSeconds = 4
    static let probes: Int32 = 2
    static let userTimeout = Duration.seconds(15)
}
