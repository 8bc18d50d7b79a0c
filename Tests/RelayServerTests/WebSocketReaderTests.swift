import RelayTestKit
import Testing

@testable import RelayServer

/// The bytes of a client become messages however they are cut, and invalid ones are refused.
@Suite struct WebSocketReaderTests {
    private static func frame(
        _ first: UInt8, _ text: [UInt8], masks: Bool = true, size: [UInt8]? = nil
    ) -> [UInt8] {
        let key: [UInt8] = [9, 0, 200, 4]
        var head =
            size
            ?? (text.count < 126
                ? [UInt8(text.count)]
                : [126, UInt8(text.count >> 8), UInt8(text.count & 0xFF)])
        if masks { head[0] |= 0x80 }
        let body = text.enumerated().map { masks ? $1 ^ key[$0 % 4] : $1 }
        return [first] + head + (masks ? key : []) + body
    }

    private static func utf8(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func read(
        _ bytes: [UInt8], at size: Int = .max, most: Int = 1000
    ) -> (events: [WebSocketReader.Event], violation: WebSocketReader.Violation?, pending: Int) {
        var reader = WebSocketReader(most: most)
        var events: [WebSocketReader.Event] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            do throws(WebSocketReader.Violation) {
                try reader.read(Array(rest.prefix(size))) { event in
                    events.append(event)
                    return true
                }
            } catch {
                return (events, error, reader.pending)
            }
            rest = rest.dropFirst(size)
        }
        return (events, nil, reader.pending)
    }

    @Test(arguments: [1, 2, 3, 7, 64, 4096])
    func `messages are the same however their bytes are cut`(size: Int) {
        let long = Self.utf8(String(repeating: "ä", count: 200))
        let bytes =
            Self.frame(0x81, Self.utf8("{}")) + Self.frame(0x01, Self.utf8("one "))
            + Self.frame(0x89, [1, 2]) + Self.frame(0x00, Self.utf8("two "))
            + Self.frame(0x80, Self.utf8("three")) + Self.frame(0x8A, [7]) + Self.frame(0x81, long)
            + Self.frame(0x88, [3, 232] + Self.utf8("bye"))
        let heard = Self.read(bytes, at: size)
        #expect(
            heard.events == [
                .text(Self.utf8("{}")), .ping([1, 2]), .text(Self.utf8("one two three")),
                .pong([7]), .text(long), .close([3, 232] + Self.utf8("bye")),
            ])
        #expect(heard.violation == nil)
        #expect(heard.pending == 0, "nothing is kept while no frame is half there")
    }

    @Test(arguments: [
        (
            frame(0x81, utf8("{}"), masks: false),
            "a frame breaks RFC 6455: a client must mask its frames"
        ),
        (frame(0x82, utf8("{}")), "frames must be text, not binary"),
        (frame(0x83, utf8("{}")), "a frame breaks RFC 6455: its opcode is unknown"),
        (frame(0x80, utf8("{}")), "the fragments of a frame are out of order"),
        (
            frame(0x01, utf8("{")) + frame(0x81, utf8("}")),
            "the fragments of a frame are out of order"
        ),
        (
            frame(0xC1, utf8("{}")),
            "a frame breaks RFC 6455: its reserved bits are set, but no extension was agreed on"
        ),
        (
            frame(0x09, utf8("x")),
            "a frame breaks RFC 6455: a control frame has at most 125 bytes and is not fragmented"
        ),
        (
            frame(0x89, Array(repeating: 1, count: 126)),
            "a frame breaks RFC 6455: a control frame has at most 125 bytes and is not fragmented"
        ),
        (frame(0x81, [0xFF, 0xFE]), "a frame is not UTF-8"),
        (frame(0x01, [0xC3]) + frame(0x80, [0x28]), "a frame is not UTF-8"),
    ])
    func `violations of RFC 6455 are refused by name`(bytes: [UInt8], reason: String) {
        #expect(Self.read(bytes).violation == .broken(reason))
        #expect(Self.read(bytes, at: 1).violation == .broken(reason))
    }

    @Test func `dropped messages are not kept, and nothing is read after them`() throws {
        var reader = WebSocketReader(most: 1000)
        var events: [WebSocketReader.Event] = []
        func read(_ bytes: [UInt8], by reader: inout WebSocketReader) throws {
            try reader.read(bytes) { event in
                events.append(event)
                return true
            }
        }
        let long = Self.frame(0x81, Array(repeating: 0x61, count: 500))
        try read(Array(long.prefix(100)), by: &reader)
        reader.drop(beyond: 100)
        #expect(reader.pending == 100, "it is little")
        reader.drop(beyond: 99)
        #expect(reader.pending == 0)
        try read(Array(long.dropFirst(100)) + Self.frame(0x88, [3, 232]), by: &reader)
        #expect(events == [] && reader.pending == 0)
        var fragments = WebSocketReader(most: 1000)
        try read(Self.frame(0x01, Array(repeating: 0x61, count: 100)), by: &fragments)
        fragments.drop(beyond: 10)
        try read(Self.frame(0x01, Array(repeating: 0x61, count: 100)), by: &fragments)
        #expect(events == [] && fragments.pending == 0)
    }

    @Test func `a character split between two fragments is joined`() {
        let bytes = Self.frame(0x01, [0xC3]) + Self.frame(0x80, [0xA4])
        #expect(Self.read(bytes).events == [.text(Self.utf8("ä"))])
    }

    @Test func `a frame that is too long is refused by its head, and fragments by their sum`() {
        let eight: [UInt8] = [127, 255, 255, 255, 255, 255, 255, 255, 255]
        #expect(Self.read(Self.frame(0x81, [], size: eight)).violation == .tooLong)
        let announced = Self.frame(0x81, [], size: [126, 3, 233])
        #expect(Self.read(announced).violation == .tooLong)
        let half = Array(repeating: UInt8(ascii: "x"), count: 600)
        let two = Self.read(Self.frame(0x01, half) + Self.frame(0x00, half))
        #expect(two.violation == .tooLong)
        #expect(two.pending <= 1000)
    }

    @Test(
        arguments: [
            ([], []), ([0x03, 0xE8], [0x03, 0xE8]), ([0x03, 0xE8, 98, 121, 101], [0x03, 0xE8]),
            ([0x0F, 0xA0], [0x0F, 0xA0]), ([0x03, 0xED], [0x03, 0xEA]), ([0x03], [0x03, 0xEA]),
            ([0x03, 0xE8, 0xFF], [0x03, 0xEA]), ([0, 0], [0x03, 0xEA]),
        ] as [([UInt8], [UInt8])])
    func `a close is answered with its code if that is valid`(reason: [UInt8], answer: [UInt8]) {
        #expect(WebSocketReader.answer(toClose: reason) == answer)
    }

    @Test func `a reader that stops gets no more messages`() throws {
        var reader = WebSocketReader(most: 100)
        var count = 0
        try reader.read(Self.frame(0x81, [123, 125]) + Self.frame(0x81, [123, 125])) { _ in
            count += 1
            return false
        }
        #expect(count == 1)
    }

    @Test func `the web client is served without its comments and otherwise unchanged`() {
        let source = "// Why.\nlet a = 1; // Stays.\n  // Because.\n\n  a;\n"
        let served = LivePages.uncommented(Array(source.utf8))
        #expect(String(decoding: served, as: UTF8.self) == "let a = 1; // Stays.\n\na;\n")
        let client = String(decoding: LivePages.client, as: UTF8.self)
        #expect(client.contains("export class LiveClient {"))
        #expect(!client.split(separator: "\n").contains { $0.drop { $0 == " " }.hasPrefix("//") })
    }
}
