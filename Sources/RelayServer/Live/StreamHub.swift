import Live
import RelayModel
import Storage
import Synchronization

/// Where one client stands who is answered over HTTP: its frames are kept until they are taken.
///
/// A stream that does not take what its groups are told lags, as a socket does (``LiveSocket``).
final class StreamHub: LiveHub {
    /// Bytes of frames that are taken at a time.
    private static let bytesAtATime = 256 * 1024
    /// Bytes that a stream may not have taken before it lags.
    private static let bytesUntaken = 256 * 1024
    /// Bytes of one answer to a poll.
    static let bytesOfAnAnswer = 32 * 1024 * 1024

    typealias FallBehind = @Sendable (_ lag: LiveLag, _ untold: [LiveFrame]) -> Void

    private struct State {
        var groups: Set<UInt32> = []
        var outbox = LiveOutbox<LiveFrame>({ $0 }, size: { $0.count })
        /// The version of the set that has been taken as a whole; 0 while more of it is to come.
        var whole: Int64 = 0
        /// Whether there is something besides what was known.
        var hasNews = false
        var isComplete = false
        var isOver = false
        /// Why it has ended, unless that was said by a frame and counted.
        var end: LiveEnd?
        var wasOverfull = false
        /// Whether nobody waits any longer for news.
        var isReleased = false
        /// Has others know that the client fell behind, and what it was not told for that.
        var fallBehind: FallBehind?
        /// Answers to fences that would say that everything had been told.
        var untold: [LiveFrame] = []
        /// Has the client told from the log what happened after a position; `nil` for polls, which
        /// are told once.
        var catchUp: (@Sendable (LiveLag) -> Void)?
        /// When the client fell behind that has been told nothing since.
        var lagging: LiveLag?
        /// How often it fell behind.
        var lags = 0
        var isCatchingUp = false
        var waiter: CheckedContinuation<Void, Never>?
        /// How much waits, as far as the others know.
        var steps = 0

        var hasEnough: Bool { isOver || isComplete && (hasNews || isReleased) }

        /// Has others know that the client fell behind; `nil` if it did so before, or did not.
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

    /// Has the client lag once too much waits for it: `fallBehind` is called with where it stands
    /// then, and `catchUp` once it has taken that.
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

    /// Tells the others how much waits; returns what ends somebody if that is too much in all.
    private func noteWaiting(_ state: inout State) -> LiveBacklog.End? {
        let waiting = state.outbox.bytes + state.outbox.resultBytes
        let steps = waiting / LiveBacklog.bytesOfStep
        guard steps != state.steps else { return nil }
        state.steps = steps
        return backlog.note(ObjectIdentifier(self), of: party, steps) { [weak self] in
            self?.giveUp(saying: Self.noRoom)
        }
    }

    /// Weighs anew what waits; a stream whose client leaves too much untaken ends.
    func weigh() {
        let (isOverfull, excess) = state.withLock { state in
            state.outbox.weighResults()
            return (state.outbox.isOverfull, noteWaiting(&state))
        }
        excess?()
        if isOverfull { giveUp() }
    }

    /// Ends it, and keeps nothing of what waits: its client comes back and goes on where it was.
    ///
    /// A poll is answered with the `reason`, unless what it asked for is too much by itself.
    private func giveUp(saying reason: LiveEnd? = nil) {
        let waiter = state.withLock { state in
            if !state.wasOverfull, state.end == nil { state.end = reason }
            (state.isOver, state.wasOverfull) = (true, true)
            state.outbox.removeAll()
            _ = noteWaiting(&state)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// What waits for all is too much, for which one ends that did nothing wrong.
    private static let noRoom = LiveEnd(
        .notNow,
        APIError(
            .tryAgainLater, "too much waits to be taken by all live clients together",
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

    /// Closes what was told; if too much of it waits, nothing more is told for now.
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
        // A client who does not take them comes back and goes on where it was.
        if state.outbox.isOverfull { (state.isOver, state.wasOverfull) = (true, true) }
    }

    /// Why the relay has ended it; `nil` if it did not, or whoever did has counted it.
    var cause: LiveEnd? {
        state.withLock { $0.end ?? ($0.wasOverfull ? LiveSocket.slow : nil) }
    }

    /// Ends it for a reason, which is the answer to a poll.
    func end(saying reason: LiveEnd) {
        state.withLock { $0.end = reason }
        end()
    }

    /// Ends a stream, and says so: what waits is told no more, as on a socket that is closed.
    func end(telling last: LiveFrame) {
        let waiter = state.withLock { state in
            state.outbox.removeAll()
            append(last, &state)
            // Whoever says why has counted it.
            (state.isOver, state.end, state.wasOverfull) = (true, nil, false)
            _ = noteWaiting(&state)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Ends it: whoever waits is told, and nothing more is kept.
    func end() {
        let waiter = state.withLock { state in
            state.isOver = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Returns once everything that was asked for is there, and something of it is news; or once
    /// it is released.
    func waitForNews() async {
        await withTaskCancellationHandler {
            while !state.withLock({ $0.hasEnough }) { await wait { $0.hasEnough } }
        } onCancel: {
            end()
        }
    }

    /// Notes that all that will be told is there.
    func finish() {
        state.withLock { state in
            (state.isComplete, state.hasNews) = (true, true)
        }
    }

    /// Lets whoever waits for news go.
    func release() {
        let waiter = state.withLock { state in
            state.isReleased = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Returns when something is posted, or at once if there is what is waited for.
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

    /// Some of what there is as events, once there is something; `nil` at the end, and once whoever
    /// asks is cancelled.
    func next() async -> [UInt8]? {
        await withTaskCancellationHandler {
            while true {
                let frames = state.withLock { take(atMost: Self.bytesAtATime, from: &$0) }
                if !frames.isEmpty { return frames.reduce(into: []) { $0 += event($1) } }
                if state.withLock({ $0.isOver }) { return nil }
                catchUpIfLagging()
                await wait { !$0.outbox.isEmpty || $0.isOver }
            }
        } onCancel: {
            end()
        }
    }

    /// Once a client that fell behind has taken what waited, it is told what happened since.
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

    /// A frame as an event; what closes a whole set has an ID.
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

    /// All frames until now.
    ///
    /// - Throws: Why it has ended, if it was for a reason; 413 if they are too many to be kept for
    ///   one answer.
    func takeAll() throws(APIError) -> [LiveFrame] {
        let (frames, isWhole, end) = state.withLock { state in
            // At once: what is told while it is taken is no sign that there was too much.
            let frames = take(atMost: Self.bytesOfAnAnswer, from: &state)
            return (frames, state.outbox.isEmpty && !state.wasOverfull, state.end)
        }
        if let end { throw end.error }
        guard isWhole else {
            throw APIError(
                .quotaExceeded,
                "what there is to be told has more than \(Self.bytesOfAnAnswer) bytes; ask for "
                    + "less, or hold a stream or a socket",
                details: ["liveError": "tooLarge"])
        }
        return frames
    }

    /// The first frames, until they have so many bytes.
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
