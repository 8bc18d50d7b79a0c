import Live
import NIOCore
import Storage

extension LiveSocket {
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
    /// Frames for all members of a group share one text, and do not count.
    func noteWaiting() {
        let waiting = outbox.ownBytes + outbox.resultBytes
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

    /// Weighs the waiting results again, and ends a client that leaves too much untaken.
    func weighWaiting() {
        guard outbox.resultBytes > 0 else { return }
        outbox.weighResults()
        noteWaiting()
        if outbox.isOverfull { close(Self.slow) }
    }

    /// The bytes that were handed to the connection and that the system has not taken.
    var bytesUnderWay: Int {
        (try? context?.channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)) ?? 0
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
