import RelayModel
import RelayTestKit
import Testing

@testable import PredicateLanguage

/// A text has the same words whether it is pure ASCII, which is read byte by byte, or not.
@Suite struct TokenSearchTests {
    private static let signs = [
        "a", "B", "z", "Z", "0", "9", "_", "-", " ", ".", "'", "@", "[", "`", "{", "/", ":", "\n",
        "the", "The", "not", "in",
    ]

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `an ASCII text has the same words when a foreign one follows`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let count = Int.random(in: 0...12, using: &generator)
            let text = (0..<count).map { _ in
                Self.signs.randomElement(using: &generator) ?? ""
            }.joined()
            let words = TokenSearch.words(of: text)
            #expect(TokenSearch.words(of: text + " \u{E9}") == words + ["e"], "\(text)")
            let isFound = words.allSatisfy { TokenSearch.isFound([$0], in: .string(text)) }
            #expect(isFound, "\(text)")
            #expect(!TokenSearch.isFound(["zzzzzzzzzzzzzzzz"], in: .string(text)))
        }
    }
}
