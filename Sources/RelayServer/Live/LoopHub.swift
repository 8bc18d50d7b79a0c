import Live
import NIOCore
import RelayModel
import Synchronization

/// The sockets of one event loop, with their groups.
///
/// The engine's posts are executed on the loop in order. Frames for all members of a group are
/// turned into bytes once.
final class LoopHub: LiveHub {
    /// The number of posts that may wait before the engine waits; a large post counts several
    /// times.
    private static let mostPending = 64
    /// The bytes that count as one more post.
    private static let bytesOfPost = 1024 * 1024

    private struct Pending {
        var posts = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    let loop: any EventLoop
    private let pending = Mutex(Pending())
    private let sockets: NIOLoopBoundBox<LoopSockets>

    init(_ loop: any EventLoop) {
        self.loop = loop
        sockets = NIOLoopBoundBox.makeBoxSendingValue(LoopSockets(), eventLoop: loop)
    }

    func post(_ commands: [LiveCommand]) {
        let weight = 1 + commands.reduce(0) { $0 + Self.bytes(of: $1) } / Self.bytesOfPost
        pending.withLock { $0.posts += weight }
        loop.execute { [self] in
            sockets.value.turn = loop.now
            for command in commands { sockets.value.perform(command) }
            let ready = pending.withLock { pending -> [CheckedContinuation<Void, Never>] in
                pending.posts -= weight
                guard pending.posts < Self.mostPending else { return [] }
                defer { pending.waiters = [] }
                return pending.waiters
            }
            for waiter in ready { waiter.resume() }
        }
    }

    /// Returns the bytes that a command holds until it is executed.
    private static func bytes(of command: LiveCommand) -> Int {
        switch command {
        case .deliver(let frames, _, _): frames.reduce(0) { $0 + $1.bytes }
        case .send(_, let frames): frames.reduce(0) { $0 + $1.count }
        default: 0
        }
    }

    func room() async {
        guard pending.withLock({ $0.posts >= Self.mostPending }) else { return }
        await withCheckedContinuation { continuation in
            let isReady = pending.withLock { pending in
                if pending.posts >= Self.mostPending { pending.waiters.append(continuation) }
                return pending.posts < Self.mostPending
            }
            if isReady { continuation.resume() }
        }
    }

    // MARK: On the loop

    /// When the current post was begun; this is exact enough for its recipients, and read only
    /// once.
    var turn: NIODeadline { sockets.value.turn ?? loop.now }

    /// Adds a socket; called on the loop.
    func add(_ socket: LiveSocket) { sockets.value.add(socket) }

    /// Removes a socket; called on the loop.
    func remove(_ socket: LiveSocket) { sockets.value.remove(socket) }

    /// Calls `body` with the numbers of the matching sockets, if there are any; both closures run
    /// on the loop.
    func numbers(
        where isWanted: @escaping @Sendable (LiveSocket) -> Bool,
        _ body: @escaping @Sendable ([UInt64]) -> Void
    ) {
        loop.execute { [self] in
            let numbers = sockets.value.all.filter(isWanted).map(\.number)
            if !numbers.isEmpty { body(numbers) }
        }
    }

    /// Calls `body` with each socket, on the loop.
    func forEach(_ body: @escaping @Sendable (LiveSocket) -> Void) {
        loop.execute { [self] in
            for socket in sockets.value.all { body(socket) }
        }
    }
}

/// The sockets of a loop, and the members of groups.
final class LoopSockets {
    private var sockets: [UInt64: LiveSocket] = [:]
    private var members: [UInt32: [LiveSocket]] = [:]
    /// When execution of the current post began.
    var turn: NIODeadline?

    var all: [LiveSocket] { Array(sockets.values) }

    func add(_ socket: LiveSocket) { sockets[socket.number] = socket }

    func remove(_ socket: LiveSocket) {
        sockets[socket.number] = nil
        for group in socket.places.keys { leave(socket, group) }
    }

    func perform(_ command: LiveCommand) {
        switch command {
        case .send(let number, let frames):
            guard let socket = sockets[number] else { return }
            for frame in frames { socket.send(frame) }
            socket.flush()
        case .show(let number, let result):
            guard let socket = sockets[number] else { return }
            socket.show(result)
            socket.flush()
        case .close(let number, let at, let position):
            guard let socket = sockets[number] else { return }
            socket.touch()
            socket.finish(Self.wire(at), position)
        case .mark(let number, let mark):
            guard let socket = sockets[number] else { return }
            socket.mark(mark)
            socket.flush()
        case .join(let number, let group):
            if let socket = sockets[number] { join(socket, group) }
        case .leave(let number, let group):
            if let socket = sockets[number] { leave(socket, group) }
        case .deliver(let frames, let at, let position): deliver(frames, at, position)
        case .told(let number, let positions): sockets[number]?.note(told: positions)
        case .caughtUp(let number): sockets[number]?.catchUp()
        }
    }

    private func join(_ socket: LiveSocket, _ group: UInt32) {
        guard socket.places[group] == nil else { return }
        socket.places[group] = members[group, default: []].count
        members[group, default: []].append(socket)
    }

    /// Removes a member in constant time: the last member takes its place in the list.
    private func leave(_ socket: LiveSocket, _ group: UInt32) {
        guard let place = socket.places.removeValue(forKey: group),
            let last = members[group]?.popLast()
        else { return }
        if last !== socket {
            members[group]?[place] = last
            last.places[group] = place
        }
        if members[group]?.isEmpty == true { members[group] = nil }
    }

    private func deliver(_ frames: [LiveGroupFrame], _ at: LiveFrame, _ position: LogPosition) {
        if let group = frames.first?.group,
            frames.allSatisfy({ $0.group == group && $0.isForAll })
        {
            return tell(
                frames.compactMap(\.whole), of: frames.compactMap(\.position), at, position,
                to: members[group] ?? [])
        }
        var touched: [LiveSocket] = []
        for frame in frames {
            guard let group = members[frame.group] else { continue }
            if frame.isForAll {
                guard let whole = frame.whole else { continue }
                let bytes = Self.wire(whole)
                for socket in group where socket.take(bytes, of: frame.position) {
                    touched.append(socket)
                }
            } else {
                deliver(frame, to: group, &touched)
            }
        }
        guard !touched.isEmpty else { return }
        let bytes = Self.wire(at)
        for socket in touched { socket.finish(bytes, position) }
    }

    /// Sends all members the same bytes, in one write for each.
    private func tell(
        _ frames: [LiveFrame], of changes: [LogPosition], _ at: LiveFrame,
        _ position: LogPosition, to group: [LiveSocket]
    ) {
        guard !frames.isEmpty, !group.isEmpty else { return }
        let size = frames.reduce(at.count) { $0 + $1.count + Self.headBytes }
        var bytes = ByteBufferAllocator().buffer(capacity: size + Self.headBytes)
        for frame in frames { Self.write(frame, to: &bytes) }
        Self.write(at, to: &bytes)
        for socket in group { socket.tell(bytes, position, of: changes) }
    }

    private func deliver(
        _ frame: LiveGroupFrame, to group: [LiveSocket], _ touched: inout [LiveSocket]
    ) {
        let audience = LiveAudience(frame, of: group.count)
        var forms: [ObjectIdentifier: ByteBuffer] = [:]
        for socket in group where !frame.except.contains(socket.number) {
            guard let looker = socket.looker,
                let form = audience.frame(for: looker.reader, on: looker.device)
            else { continue }
            let id = ObjectIdentifier(form)
            let bytes = forms[id] ?? Self.wire(form)
            forms[id] = bytes
            if socket.take(bytes, of: frame.position) { touched.append(socket) }
        }
    }

    /// Returns a text frame as it is sent; a server masks nothing (RFC 6455, §5.1).
    static func wire(_ frame: LiveFrame) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: frame.count + headBytes)
        write(frame, to: &buffer)
        return buffer
    }

    /// Returns a control frame, whose payload has at most 125 bytes.
    static func control(_ first: UInt8, _ payload: [UInt8]) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: payload.count + 2)
        buffer.writeInteger(first)
        buffer.writeInteger(UInt8(payload.count))
        buffer.writeBytes(payload)
        return buffer
    }

    /// The maximum number of bytes in the head of a frame.
    private static let headBytes = 10

    private static func write(_ frame: LiveFrame, to buffer: inout ByteBuffer) {
        let count = frame.count
        buffer.writeInteger(UInt8(0x81))
        switch count {
        case ..<126: buffer.writeInteger(UInt8(count))
        case ..<65_536:
            buffer.writeInteger(UInt8(126))
            buffer.writeInteger(UInt16(count))
        default:
            buffer.writeInteger(UInt8(127))
            buffer.writeInteger(UInt64(count))
        }
        buffer.writeBytes(frame.head)
        buffer.writeBytes(frame.rest)
    }
}
