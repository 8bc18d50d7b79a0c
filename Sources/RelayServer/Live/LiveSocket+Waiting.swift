import Live
import NIOCore
import Storage

extension LiveSocket {
    /// Queues a frame for this client alone.
    func send(_ frame: LiveFrame) {
        guard !isClosing else { return }
        // It would say that everything had been sent.
        if let lagging, frame.type == "fenced" { return fallBehind(at: lagging, untold: [frame]) }
        outbox.append(own: frame)
    }

    /// Has the engine know that the client fell behind, and what it was not sent for that.
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

    /// Has a mark reached once the connection has taken what is queued.
    func mark(_ mark: LiveMark) {
        guard !isClosing else { return }
        outbox.append(mark)
    }

    /// What a socket may leave untaken without being counted: what a catching-up usually is.
    private static let uncounted = 1024 * 1024

    /// Tells the others how much of its own waits, and ends somebody if that is too much in all.
    ///
    /// What is told to all members of a group is one text for all, and does not count.
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

    /// Weighs anew what waits; a client that leaves too much untaken ends.
    func weighWaiting() {
        guard outbox.resultBytes > 0 else { return }
        outbox.weighResults()
        noteWaiting()
        if outbox.isOverfull { close(Self.slow) }
    }

    /// The bytes that have gone to the connection, and that the system has not taken.
    var bytesUnderWay: Int {
        (try? context?.channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)) ?? 0
    }

    /// Lets go of what waits, and of what has come.
    func forgetWaiting() {
        forgetHeld()
        outbox.removeAll()
        guard let noted else { return }
        self.noted = nil
        _ = access.backlog.note(ObjectIdentifier(self), of: noted.party, 0, end: {})
    }
}
