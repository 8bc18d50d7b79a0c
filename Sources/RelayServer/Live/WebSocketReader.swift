import RelayModel

/// Parses a client's bytes into messages (RFC 6455); a value that holds nothing between frames.
///
/// Cost: incomplete data is kept once, and is never more than one message and the head of a frame.
/// Each byte is copied a few times, however small the pieces and fragments are.
struct WebSocketReader: Sendable {
    /// An event in what a client sends.
    enum Event: Sendable, Hashable {
        /// A complete text message, with its fragments joined; it is valid UTF-8.
        case text([UInt8])
        /// A ping, to be answered with the same payload.
        case ping([UInt8])
        /// A pong, with the payload of the ping.
        case pong([UInt8])
        /// A close frame with its reason: a code of two bytes and a text, or nothing.
        case close([UInt8])
    }

    /// A violation, which ends the connection.
    enum Violation: Error, Hashable {
        /// A frame or message exceeds the maximum length.
        case tooLong
        /// A frame breaks RFC 6455, or is of a kind that this relay does not accept.
        case broken(String)
    }

    private enum Opcode: UInt8 {
        case continuation = 0, text, binary, close = 8, ping, pong
    }

    /// The parsed head of a frame.
    private struct Head {
        let isLast: Bool
        let opcode: Opcode
        let start: Int
        let count: Int
    }

    /// The maximum number of bytes in a message.
    private let most: Int
    /// The beginning of an incomplete frame.
    private var rest: [UInt8] = []
    /// The fragments of an incomplete text message.
    private var message: [UInt8]?
    /// Whether incomplete data has been dropped, after which nothing can be read.
    private var isDeaf = false

    /// Creates a reader of messages of at most `most` bytes.
    init(most: Int) {
        self.most = most
    }

    /// The bytes of incomplete frames and messages.
    var pending: Int { rest.count + (message?.count ?? 0) }

    /// Drops incomplete data of more than `most` bytes; after that, all input is ignored.
    mutating func drop(beyond most: Int) {
        guard pending > most else { return }
        (rest, message, isDeaf) = ([], nil, true)
    }

    /// Returns the answer to a client's close frame: its code, if a close frame may have that code,
    /// or else the code of a protocol error (RFC 6455, §7.4).
    static func answer(toClose reason: [UInt8]) -> [UInt8] {
        guard let first = reason.first else { return [] }
        let broken: [UInt8] = [0x03, 0xEA]
        guard reason.count >= 2 else { return broken }
        let code = UInt16(first) << 8 | UInt16(reason[1])
        let isUTF8 = String(utf8: reason.dropFirst(2)) != nil
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: return isUTF8 ? [first, reason[1]] : broken
        default: return broken
        }
    }

    /// Parses received bytes, and calls `tell` with each event in order, until it returns `false`.
    ///
    /// - Throws: ``Violation``; do not read any further input after it.
    mutating func read(
        _ bytes: [UInt8], _ tell: (Event) -> Bool
    ) throws(Violation) {
        if isDeaf { return }
        // Appended in place; otherwise a frame that arrives byte by byte would be copied for each
        // byte.
        var all: [UInt8] = []
        swap(&all, &rest)
        if all.isEmpty { all = bytes } else { all.append(contentsOf: bytes) }
        var place = 0
        while let head = try head(all, at: place), head.start + head.count <= all.count {
            place = head.start + head.count
            let payload = Self.unmasked(all, head)
            if let event = try event(head, payload), !tell(event) { return }
        }
        if place == 0 { rest = all } else if place < all.count { rest = Array(all[place...]) }
    }

    /// Returns the head of the frame at `place`; `nil` if it is incomplete.
    private func head(_ all: [UInt8], at place: Int) throws(Violation) -> Head? {
        guard all.count - place >= 2 else { return nil }
        let (first, second) = (all[place], all[place + 1])
        guard first & 0x70 == 0 else {
            throw .broken(
                "a frame breaks RFC 6455: its reserved bits are set, but no extension was agreed on"
            )
        }
        guard second & 0x80 != 0 else {
            throw .broken("a frame breaks RFC 6455: a client must mask its frames")
        }
        guard let opcode = Opcode(rawValue: first & 0xF) else {
            throw .broken("a frame breaks RFC 6455: its opcode is unknown")
        }
        let short = Int(second & 0x7F)
        if opcode.rawValue >= 8, first & 0x80 == 0 || short > 125 {
            throw .broken(
                "a frame breaks RFC 6455: a control frame has at most 125 bytes and is not "
                    + "fragmented")
        }
        let size = short == 126 ? 2 : short == 127 ? 8 : 0
        guard all.count - place >= 2 + size + 4 else { return nil }
        let long = all[(place + 2)..<(place + 2 + size)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let count = size == 0 ? UInt64(short) : long
        guard count <= UInt64(most) else { throw .tooLong }
        return Head(
            isLast: first & 0x80 != 0, opcode: opcode, start: place + 2 + size + 4,
            count: Int(count))
    }

    private static func unmasked(_ all: [UInt8], _ head: Head) -> [UInt8] {
        var payload = Array(all[head.start..<(head.start + head.count)])
        for index in payload.indices { payload[index] ^= all[head.start - 4 + index % 4] }
        return payload
    }

    private mutating func event(
        _ head: Head, _ payload: [UInt8]
    ) throws(Violation) -> Event? {
        switch head.opcode {
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        case .close: return .close(payload)
        case .binary: throw .broken("frames must be text, not binary")
        case .text, .continuation: break
        }
        guard (head.opcode == .text) == (message == nil) else {
            throw .broken("the fragments of a frame are out of order")
        }
        guard (message?.count ?? 0) + payload.count <= most else { throw .tooLong }
        var text: [UInt8] = []
        if let begun = message {
            message = nil
            text = begun
        }
        text.append(contentsOf: payload)
        guard head.isLast else {
            message = text
            return nil
        }
        guard String(utf8: text) != nil else {
            throw .broken("a frame is not UTF-8")
        }
        return .text(text)
    }
}
