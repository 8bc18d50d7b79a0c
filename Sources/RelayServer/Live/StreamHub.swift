import Live
import RelayModel
import Storage
import Synchronization

/// The hub of one client that is answered over HTTP; it keeps frames until they are taken.
///
/// A stream that does not take its groups' frames lags, as a socket does (``LiveSocket``).
final class StreamHub: LiveHub {
    /// The bytes that are taken at a time.
    private static let bytesAtATime = 256 * 1024
    /// The bytes that a stream may leave untaken before it lags.
    private static let bytesUntaken = 256 * 1024
    /// The bytes in one answer to a poll.
    static let bytesOfAnAnswer = 32 * 1024 * 1024

    typealias FallBehind = @Sendable (_ lag: LiveLag, _ untold: [LiveFrame]) -> Void

    private struct State {
        var groups: Set<UInt32> = []
        var outbox = LiveOutbox<LiveFrame>({ $0 }, size: { $0.count })
        /// The rest of the events of which a part has been taken.
        var rest: ArraySlice<UInt8> = []
        /// The version of the set that has been sent completely; 0 while more of it is to come.
        var whole: Int64 = 0
        /// Whether there are frames besides those that any answer has.
        var hasNews = false
        var isComplete = false
        var isOver = false
        /// Why it has ended, unless a frame has said that and it has been counted.
        var end: LiveEnd?
        var wasOverfull = false
        /// Whether a poll is to be answered even without news.
        var isReleased = false
        /// Tells the engine that the client fell behind, and which answers it was not sent because
        /// of that.
        var fallBehind: FallBehind?
        /// The answers to fences that would wrongly say that everything had been sent.
        var untold: [LiveFrame] = []
        /// Makes the client catch up from the log after a position; `nil` for polls, which are
        /// answered once.
        var catchUp: (@Sendable (LiveLag) -> Void)?
        /// When the client fell behind; it is sent nothing since then.
        var lagging: LiveLag?
        /// The number of times that it fell behind.
        var lags = 0
        var isCatchingUp = false
        var waiter: CheckedContinuation<Void, Never>?
        /// The amount that waits, as last reported.
        var steps = 0

        var hasEnough: Bool { isOver || isComplete && (hasNews || isReleased) }

        /// Returns the report that the client fell behind; `nil` if there is nothing new to report.
        mutating func lag(after former: LiveLag?) -> (@Sendable () -> Void)? {
            let fences = untold
            untold = []
            guard let lagging, lagging != former || !fences.isEmpty, let fallBehind else {
                return nil
            }
            return { fallBehind(lagging, fences) }
        }
    }

    private let reader: LiveReader
    private let device: DeviceID?
    private let party: LiveBacklog.Party
    private let backlog: LiveBacklog
    private let state = Mutex(State())

    init(_ identity: LiveIdentity, _ backlog: LiveBacklog) {
        reader = identity.reader
        device = identity.device
        party = LiveBacklog.Party(container: identity.settings.key, user: identity.user)
        self.backlog = backlog
    }

    deinit {
        _ = backlog.note(ObjectIdentifier(self), of: party, 0, end: {})
    }

    /// Lets the client lag when too much waits for it: `fallBehind` is called when it falls behind,
    /// and `catchUp` once it has taken what waited.
    func lag(
        _ fallBehind: @escaping FallBehind,
        until catchUp: @escaping @Sendable (LiveLag) -> Void
    ) {
        state.withLock { ($0.fallBehind, $0.catchUp) = (fallBehind, catchUp) }
    }

    func post(_ commands: [LiveCommand]) {
        let (waiter, excess, lag) = state.withLock { state in
            let former = state.lagging
            for command in commands { perform(command, &state) }
            let excess = noteWaiting(&state)
            let lag = state.lag(after: former)
            guard !state.outbox.isEmpty || state.isOver else {
                return (nil as CheckedContinuation<Void, Never>?, excess, lag)
            }
            defer { state.waiter = nil }
            return (state.waiter, excess, lag)
        }
        waiter?.resume()
        excess?()
        lag?()
    }

    /// Reports how much waits; returns what ends a stream if the total is too much.
    private func noteWaiting(_ state: inout State) -> LiveBacklog.End? {
        // The rest keeps in memory what was taken of it, too.
        let events = state.rest.isEmpty ? 0 : state.rest.endIndex
        let waiting = state.outbox.bytes + state.outbox.resultBytes + events
        let steps = waiting / LiveBacklog.bytesOfStep
        guard steps != state.steps else { return nil }
        state.steps = steps
        return backlog.note(ObjectIdentifier(self), of: party, steps) { [weak self] in
            self?.giveUp(saying: Self.noRoom)
        }
    }

    /// Weighs the waiting results again, and ends a stream whose client leaves too much untaken.
    func weigh() {
        let (isOverfull, excess) = state.withLock { state in
            state.outbox.weighResults()
            return (state.outbox.isOverfull, noteWaiting(&state))
        }
        excess?()
        if isOverfull { giveUp() }
    }

    /// Ends the stream and discards what waits; its client comes back and continues.
    ///
    /// A poll is answered with the `reason`, unless what it asked for is too much by itself.
    private func giveUp(saying reason: LiveEnd? = nil) {
        let waiter = state.withLock { state in
            if !state.wasOverfull, state.end == nil { state.end = reason }
            (state.isOver, state.wasOverfull) = (true, true)
            state.outbox.removeAll()
            state.rest = []
            _ = noteWaiting(&state)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// The end of a client that did nothing wrong, because too much waits for all clients together.
    private static let noRoom = LiveEnd(
        .notNow,
        APIError(
            .tryAgainLater, "too much data waits for all live clients together",
            retryAfter: 5))

    func room() async {}

    private func perform(_ command: LiveCommand, _ state: inout State) {
        switch command {
        case .send(_, let frames):
            for frame in frames {
                if state.lagging != nil, frame.type == "fenced" {
                    state.untold.append(frame)
                } else {
                    append(frame, &state)
                }
            }
        case .show(_, let result):
            guard !state.isOver else { return }
            state.outbox.append(result)
            state.hasNews = true
            if state.outbox.isOverfull { (state.isOver, state.wasOverfull) = (true, true) }
        case .close(_, let at, let position):
            state.isComplete = true
            close(at, position, &state)
        case .mark(_, let mark):
            guard !state.isOver else { return }
            state.outbox.append(mark)
        case .join(_, let group): state.groups.insert(group)
        case .leave(_, let group): state.groups.remove(group)
        case .deliver(let frames, let at, let position):
            guard state.lagging == nil else { return }
            var isTouched = false
            for frame in frames where state.groups.contains(frame.group) {
                guard let form = frame.frame(for: reader, on: device) else { continue }
                append(form, &state)
                isTouched = true
            }
            if isTouched { close(at, position, &state) }
        case .caughtUp: (state.lagging, state.isCatchingUp) = (nil, false)
        // Nothing proves that a stream is read.
        case .told: break
        }
    }

    /// Appends an `at` frame; if too much waits then, the client lags.
    private func close(_ at: LiveFrame, _ position: LogPosition, _ state: inout State) {
        guard state.lagging == nil else { return }
        append(at, &state)
        guard state.catchUp != nil, state.outbox.bytes > Self.bytesUntaken else { return }
        state.lags += 1
        state.lagging = LiveLag(position, count: state.lags)
    }

    private func append(_ frame: LiveFrame, _ state: inout State) {
        guard !state.isOver else { return }
        state.outbox.append(frame)
        if !["welcome", "state", "at", "place"].contains(frame.type) { state.hasNews = true }
        // A client that does not take its frames comes back and continues.
        if state.outbox.isOverfull { (state.isOver, state.wasOverfull) = (true, true) }
    }

    /// Why the relay ended the stream; `nil` if it did not, or if that has been counted already.
    var cause: LiveEnd? {
        state.withLock { $0.end ?? ($0.wasOverfull ? LiveSocket.slow : nil) }
    }

    /// Ends the stream for a reason, which answers a poll.
    func end(saying reason: LiveEnd) {
        state.withLock { $0.end = reason }
        end()
    }

    /// Ends the stream with a last frame; what waits is discarded, as on a socket that is closed.
    func end(telling last: LiveFrame) {
        let waiter = state.withLock { state in
            state.outbox.removeAll()
            append(last, &state)
            // The caller that gives the reason has counted it.
            (state.isOver, state.end, state.wasOverfull) = (true, nil, false)
            _ = noteWaiting(&state)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Ends the stream, resumes the waiter, and keeps nothing more.
    func end() {
        let waiter = state.withLock { state in
            state.isOver = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Returns once everything requested is there and contains news, or once the poll is released.
    func waitForNews() async {
        await withTaskCancellationHandler {
            while !state.withLock({ $0.hasEnough }) { await wait { $0.hasEnough } }
        } onCancel: {
            end()
        }
    }

    /// Notes that everything that will be sent is there.
    func finish() {
        state.withLock { state in
            (state.isComplete, state.hasNews) = (true, true)
        }
    }

    /// Makes a poll be answered without waiting for news.
    func release() {
        let waiter = state.withLock { state in
            state.isReleased = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Returns when something is posted, or at once if the condition holds already.
    private func wait(until isReady: (State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                guard !isReady(state) else { return true }
                state.waiter = continuation
                return false
            }
            if isReady { continuation.resume() }
        }
    }

    /// Returns a part of the waiting frames as events, once there are any; `nil` at the end, or
    /// once the task is cancelled.
    func next() async -> [UInt8]? {
        await withTaskCancellationHandler {
            while true {
                if let piece = piece() { return piece }
                if state.withLock({ $0.isOver }) { return nil }
                catchUpIfLagging()
                await wait { !$0.outbox.isEmpty || $0.isOver }
            }
        } onCancel: {
            end()
        }
    }

    /// Returns the next bytes of the waiting events; `nil` if nothing waits.
    ///
    /// A frame may have megabytes. They count as waiting until the connection takes them, so that
    /// they can be discarded.
    private func piece() -> [UInt8]? {
        let frames = state.withLock { state in
            state.rest.isEmpty ? take(atMost: Self.bytesAtATime, from: &state) : []
        }
        let events = frames.reduce(into: [UInt8]()) { $0 += event($1) }
        return state.withLock { state in
            if !events.isEmpty { state.rest = events[...] }
            let piece = state.rest.prefix(Self.bytesAtATime)
            guard !piece.isEmpty else { return nil }
            state.rest = state.rest.dropFirst(piece.count)
            if state.rest.isEmpty { state.rest = [] }
            _ = noteWaiting(&state)
            return Array(piece)
        }
    }

    /// Asks the engine to catch up once a client that fell behind has taken what waited.
    private func catchUpIfLagging() {
        let begin = state.withLock { state -> (@Sendable () -> Void)? in
            guard !state.isCatchingUp, state.outbox.isEmpty, let lagging = state.lagging,
                let catchUp = state.catchUp
            else { return nil }
            state.isCatchingUp = true
            return { catchUp(lagging) }
        }
        begin?()
    }

    /// Returns a frame as an event; a frame that closes a whole set has an ID.
    private func event(_ frame: LiveFrame) -> [UInt8] {
        let version = state.withLock { state in
            if let version = frame.complete { state.whole = version }
            return state.whole
        }
        var bytes: [UInt8] = []
        if let place = LiveEventID(of: frame, version: version) {
            bytes += Array("id: \(place.text)\n".utf8)
        }
        bytes += Array("data: ".utf8)
        bytes += frame.head
        bytes += frame.rest
        return bytes + [10, 10]
    }

    /// Returns the next frames of an answer that has `bytes` of them so far; none if nothing waits.
    ///
    /// The engine waits while frames are taken, and they may be written only then.
    ///
    /// - Throws: The reason for which the stream has ended, if any; 413 if there are too many
    ///   frames for one answer.
    func takeSome(after bytes: Int) throws(APIError) -> [LiveFrame] {
        let most = min(Self.bytesAtATime, Self.bytesOfAnAnswer - bytes)
        let (frames, isTooMuch, end) = state.withLock { state in
            let frames = take(atMost: most, from: &state)
            return (frames, most <= 0 && !state.outbox.isEmpty || state.wasOverfull, state.end)
        }
        if let end { throw end.error }
        guard !isTooMuch else {
            throw APIError(
                .quotaExceeded,
                "the answer would have more than \(Self.bytesOfAnAnswer) bytes; ask for less, or "
                    + "use a stream or a WebSocket",
                details: ["liveError": "tooLarge"])
        }
        return frames
    }

    /// Returns the first frames, up to the one with which they reach `most` bytes.
    private func take(atMost most: Int, from state: inout State) -> [LiveFrame] {
        var frames: [LiveFrame] = []
        var bytes = 0
        while bytes < most, let frame = state.outbox.next() {
            frames.append(frame)
            bytes += frame.count
        }
        _ = noteWaiting(&state)
        return frames
    }
}
