import RelayModel
import Testing

@testable import Fanout

@Suite struct FieldTextTests {
    @Test(
        arguments: [
            (1907, "1907"), (-0.0, "0"), (0.1, "0.1"), (1e300, "1e+300"), (-2.5, "-2.5"),
            (9_007_199_254_740_992, "9007199254740992"),
        ] as [(Double, String)])
    func `numbers are written as people write them`(number: Double, text: String) {
        #expect(FieldText.digits(of: number) == text)
    }

    /// Initial Hangul consonants join to one grapheme, however many there are.
    @Test func `a long condition is shortened, even if it is one grapheme`() {
        let letter = String(repeating: "\u{1100}", count: 10_000)
        let long = FailedComparison(asked: "t == '\(letter)'", .noRecord).text
        #expect(long.hasSuffix("…") && long.unicodeScalars.count < 200)
        let short = "t == '\(String(repeating: "x", count: 112))'"
        #expect(FailedComparison(asked: short, .noRecord).pastText.hasSuffix(short))
    }
}
