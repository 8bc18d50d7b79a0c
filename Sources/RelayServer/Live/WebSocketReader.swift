import RelayModel

/// Takes a client's bytes apart into messages (RFC 6455): a value, which keeps nothing while no
/// frame is half there.
///
/// Cost: what is half there is kept once, and never more than one message and the head of a frame;
/// each byte is copied a few times, however small the pieces and the fragments are.
struct WebSocketReader: Sendable {
    /// What a client said.
    enum Event: Sendable, Hashable {
        /// A whole text, its fragments joined; it is UTF-8.
        case text([UInt8])
        /// Asks for an answer with the same bytes.
        case ping([UInt8])
        /// An answer, with the bytes that were asked with.
        case pong([UInt8])
        /// It goes, for this reason: a code of two bytes and words, or nothing.
        case close([UInt8])
    }

    /// What ends a connection.
    enum Violation: Error, Hashable {
        /// A frame, or the fragments of one, has more bytes than there may be.
        case tooLong
        /// RFC 6455, or what this relay takes of it, does not allow it.
        case broken(String)
    }

    private enum Opcode: UInt8 {
        case continuation = 0, text, binary, close = 8, ping, pong
    }

    /// A frame's head, read.
    private struct Head {
        let isLast: Bool
        let opcode: Opcode
        let start: Int
        let count: Int
    }

    /// Bytes of a message at most.
    private let most: Int
    /// The beginning of a frame whose end has not come.
    private var rest: [UInt8] = []
    /// The fragments of a text until now.
    private var message: [UInt8]?
    /// Whether what was half there has been dropped, behind which nothing can be read.
    private var isDeaf = false

    /// Reads messages of at most `most` bytes.
    init(most: Int) {
        self.most = most
    }

    /// Bytes that wait for their ends.
    var pending: Int { rest.count + (message?.count ?? 0) }

    /// Drops what waits for its end if that has more than `most` bytes; nothing is told of what
    /// comes behind it.
    mutating func drop(beyond most: Int) {
        guard pending > most else { return }
        (rest, message, isDeaf) = ([], nil, true)
    }

    /// What a client's close is answered with: its code, if that may stand in a close, or else that
    /// it broke the protocol (RFC 6455, §7.4).
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

    /// Reads what came, and calls `tell` with each event, in order, until it says that it wants no
    /// more.
    ///
    /// - Throws: ``Violation``; nothing that comes after it is to be read.
    mutating func read(
        _ bytes: [UInt8], _ tell: (Event) -> Bool
    ) throws(Violation) {
        if isDeaf { return }
        // Appended where it lies, or a frame that comes byte by byte would be copied for each.
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

    /// The head of the frame at `place`; `nil` if it has not come wholly.
    private func head(_ all: [UInt8], at place: Int) throws(Violation) -> Head? {
        guard all.count - place >= 2 else { return nil }
        let (first, second) = (all[place], all[place + 1])
        guard first & 0x70 == 0 else {
            throw .broken("a frame breaks RFC 6455: no extension was agreed on")
        }
        guard second & 0x80 != 0 else { throw .broken("a client masks its frames") }
        guard let opcode = Opcode(rawValue: first & 0xF) else {
            throw .broken("an opcode is unknown")
        }
        let short = Int(second & 0x7F)
        if opcode.rawValue >= 8, first & 0x80 == 0 || short > 125 {
            throw .broken("a frame breaks RFC 6455: a control frame is short, and whole")
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
        case .binary: throw .broken("frames are texts, not bytes")
        case .text, .continuation: break
        }
        guard (head.opcode == .text) == (message == nil) else {
            throw .broken("fragments of a frame are out of order")
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
            throw .broken("a frame is no UTF-8")
        }
        return .text(text)
    }
}
