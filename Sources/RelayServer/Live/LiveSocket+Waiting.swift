import Live
import NIOCore
import RelayModel
import Storage

extension LiveSocket {
    static let slow = LiveEnd(
        .slow,
        APIError(
            .throttled, "the client does not read what is sent to it", retryAfter: 1))

    /// Ends a client for which too much is queued.
    ///
    /// A connection is handed nothing but control frames while it has no room, so these have a
    /// bound. The frame that filled it has none: it may show a client that comes back all of a
    /// large result. A client that does not read it is ended when it has taken nothing for long.
    func bound() {
        guard let context, !isClosing else { return }
        if context.channel.isWritable { controlsUnderWay = 0 }
        if outbox.isOverfull || controlsUnderWay > Self.marks.high { close(Self.slow) }
    }

    /// Queues a frame for this client alone.
    func send(_ frame: LiveFrame) {
        guard !isClosing else { return }
        // Its answer to a fence would wrongly say that everything had been sent.
        if let lagging, frame.type == "fenced" { return fallBehind(at: lagging, untold: [frame]) }
        outbox.append(own: frame)
    }

    /// Tells the engine that the client fell behind, and which answers it was not sent because of
    /// that.
    func fallBehind(at lag: LiveLag, untold fences: [LiveFrame] = []) {
        Task { [engine = access.engine, number] in
            await engine.fallBehind(number, at: lag, untold: fences)
        }
    }

    /// Queues a result.
    func show(_ result: LiveResult) {
        guard !isClosing else { return }
        outbox.append(result)
    }

    /// Reaches a mark once the connection has taken what is queued before it.
    func mark(_ mark: LiveMark) {
        guard !isClosing else { return }
        outbox.append(mark)
    }

    /// The bytes that a socket may leave untaken without being counted; catching up usually needs
    /// less.
    private static let uncounted = 1024 * 1024

    /// Reports how much waits for this client alone, and ends a connection if the total is too
    /// much.
    ///
    /// Frames for all members of a group share one text, and do not count before TLS has encrypted
    /// them for each of them.
    func noteWaiting() {
        let underWay = direct.isEncrypted ? bytesWithoutRoom : ownUnderWay
        let waiting = outbox.ownBytes + outbox.resultBytes + underWay
        let steps = max(0, waiting - Self.uncounted) / LiveBacklog.bytesOfStep
        guard steps != noted?.steps ?? 0, let identity, let context else { return }
        let party = LiveBacklog.Party(container: identity.settings.key, user: identity.user)
        noted = (party, steps)
        let here = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        let excess = access.backlog.note(ObjectIdentifier(self), of: party, steps) {
            loop.execute { here.value.close(Self.slow) }
        }
        excess?()
    }

    /// Weighs again what waits, and ends a client that leaves too much untaken.
    func weighWaiting() {
        guard outbox.resultBytes > 0 || noted != nil else { return }
        outbox.weighResults()
        noteWaiting()
        if outbox.isOverfull { close(Self.slow) }
    }

    /// The bytes that were handed to the connection and that the system has not taken.
    var bytesUnderWay: Int {
        (try? context?.channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)) ?? 0
    }

    /// The bytes under way in a connection that has no room.
    private var bytesWithoutRoom: Int {
        context?.channel.isWritable == false ? bytesUnderWay : 0
    }

    /// Discards what waits to be sent, and what has been received.
    func forgetWaiting() {
        forgetHeld()
        outbox.removeAll()
        guard let noted else { return }
        self.noted = nil
        _ = access.backlog.note(ObjectIdentifier(self), of: noted.party, 0, end: {})
    }
}
