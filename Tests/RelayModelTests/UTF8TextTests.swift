import RelayModel
import RelayTestKit
import Testing

@Suite struct UTF8TextTests {
    @Test func `bytes are a text exactly if the standard library says so`() {
        var random = SeededGenerator(seed: 8)
        // Complete characters of one to four bytes, and parts of characters.
        let pieces: [[UInt8]] = [
            [0x00], [0x41], [0x7F], [0xC3, 0xA9], [0xE8, 0xAA, 0x9E], [0xF0, 0x9F, 0x91, 0x8D],
            [0x80], [0xC0, 0x80], [0xE8, 0xAA], [0xED, 0xA0, 0x80], [0xEF, 0xBF, 0xBD], [0xFF],
        ]
        var texts = 0
        for _ in 0..<5_000 {
            let kinds = random.chance(60) ? 6 : pieces.count
            let bytes = (0..<Int.random(in: 0...24, using: &random)).flatMap { _ in
                pieces[Int.random(in: 0..<kinds, using: &random)]
            }
            let text = String(validating: bytes, as: UTF8.self)
            #expect(String(utf8: bytes) == text, "\(bytes)")
            #expect(String(utf8: bytes[...]) == text)
            #expect(String(utf8: bytes.lazy.map { $0 }) == text)
            #expect(bytes.isASCII == bytes.allSatisfy { $0 < 0x80 })
            if text != nil { texts += 1 }
        }
        #expect((1_000..<4_900).contains(texts), "\(texts)")
    }
}
