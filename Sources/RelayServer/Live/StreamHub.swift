import Live
import RelayModel
import Synchronization

/// Where one client stands who is answered over HTTP: its frames are kept until they are taken.
final class StreamHub: LiveHub {
    /// Bytes of frames that are taken at a time.
    private static let bytesAtATime = 256 * 1024
    /// Bytes of one answer to a poll.
    static let bytesOfAnAnswer = 32 * 1024 * 1024

    private struct State {
        var groups: Set<UInt32> = []
        var outbox = LiveOutbox<LiveFrame>({ $0 }, size: { $0.bytes.count })
        /// The version of the set that has been taken as a whole; 0 while more of it is to come.
        var whole: Int64 = 0
        /// Whether there is something besides what was known.
        var hasNews = false
        var isComplete = false
        var isOver = false
        var wasOverfull = false
        /// Whether nobody waits any longer for news.
        var isReleased = false
        var waiter: CheckedContinuation<Void, Never>?

        var hasEnough: Bool { isOver || isComplete && (hasNews || isReleased) }
    }

    private let reader: LiveReader
    private let device: DeviceID?
    private let state = Mutex(State())

    init(_ identity: LiveIdentity) {
        reader = identity.reader
        device = identity.device
    }

    func post(_ commands: [LiveCommand]) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            for command in commands { perform(command, &state) }
            guard !state.outbox.isEmpty || state.isOver else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    func room() async {}

    private func perform(_ command: LiveCommand, _ state: inout State) {
        switch command {
        case .send(_, let frames):
            for frame in frames { append(frame, &state) }
        case .show(_, let result):
            guard !state.isOver else { return }
            state.outbox.append(result)
            state.hasNews = true
        case .close(_, let at, _):
            state.isComplete = true
            append(at, &state)
        case .mark(_, let mark):
            guard !state.isOver else { return }
            state.outbox.append(mark)
        case .join(_, let group): state.groups.insert(group)
        case .leave(_, let group): state.groups.remove(group)
        case .deliver(let frames, let at, _):
            var isTouched = false
            for frame in frames where state.groups.contains(frame.group) {
                guard let form = frame.frame(for: reader, on: device) else { continue }
                append(form, &state)
                isTouched = true
            }
            if isTouched { append(at, &state) }
        // Nothing says whether a stream is read.
        case .caughtUp, .told: break
        }
    }

    private func append(_ frame: LiveFrame, _ state: inout State) {
        guard !state.isOver else { return }
        state.outbox.append(frame)
        if !["welcome", "state", "at"].contains(frame.type) { state.hasNews = true }
        // A client who does not take them comes back and goes on where it was.
        if state.outbox.isOverfull { (state.isOver, state.wasOverfull) = (true, true) }
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
                let frames = state.withLock { Self.take(atMost: Self.bytesAtATime, from: &$0) }
                if !frames.isEmpty { return frames.reduce(into: []) { $0 += event($1) } }
                if state.withLock({ $0.isOver }) { return nil }
                await wait { !$0.outbox.isEmpty || $0.isOver }
            }
        } onCancel: {
            end()
        }
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
        bytes += frame.bytes
        return bytes + [10, 10]
    }

    /// All frames until now; `nil` if they are too many to be kept for one answer.
    func takeAll() -> [LiveFrame]? {
        state.withLock { state in
            // At once: what is told while it is taken is no sign that there was too much.
            let frames = Self.take(atMost: Self.bytesOfAnAnswer, from: &state)
            return state.outbox.isEmpty && !state.wasOverfull ? frames : nil
        }
    }

    /// The first frames, until they have so many bytes.
    private static func take(atMost most: Int, from state: inout State) -> [LiveFrame] {
        var frames: [LiveFrame] = []
        var bytes = 0
        while bytes < most, let frame = state.outbox.next() {
            frames.append(frame)
            bytes += frame.bytes.count
        }
        return frames
    }
}
