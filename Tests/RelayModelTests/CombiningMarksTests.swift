import RelayModel
import Testing

/// Long runs of combining marks are refused, because comparing them takes quadratic time.
@Suite struct CombiningMarksTests {
    private static func marks(_ count: Int) -> String {
        String(repeating: "\u{323}\u{301}", count: count / 2)
    }

    @Test func `endless runs of combining marks are detected`() {
        #expect(Limits.maximumMarksInARow == 64)
        #expect(!"".hasEndlessMarks)
        #expect(!String(repeating: "é", count: 1000).hasEndlessMarks)
        #expect(!String(repeating: "e\u{301}\u{323}", count: 1000).hasEndlessMarks)
        #expect(!("a" + Self.marks(64)).hasEndlessMarks)
        #expect(("a" + Self.marks(66)).hasEndlessMarks)
        #expect((Self.marks(66) + "a").hasEndlessMarks)
        // These marks have class 0, but their decompositions have the classes 129, 130 and 132.
        #expect(String(repeating: "\u{F73}", count: 65).hasEndlessMarks)
        #expect(String(repeating: "\u{344}", count: 65).hasEndlessMarks)
        #expect(!String(repeating: "語한我 и λ", count: 100).hasEndlessMarks)
    }

    @Test(arguments: ["", "\"a\": 1, ", "\"a\": [{\"b\": "])
    func `parsed JSON with an endless run of marks is refused, in names and in texts`(
        before: String
    ) {
        let after = before.hasSuffix(": ") ? "}]" : ""
        let escaped = String(repeating: "\\u0323\\u0301", count: 33)
        for text in [Self.marks(66), escaped] {
            for body in ["\"\(text)\": 1", "\"b\": \"\(text)\""] {
                let inner = before.hasSuffix(": ") ? "{\(body)}" : body
                let error = #expect(throws: JSONSyntaxError.self) {
                    try JSONValue(parsing: "{\(before)\(inner)\(after)}")
                }
                #expect(error?.reason == "a string has more than 64 combining marks in a row")
            }
        }
        // A text that was stored before the rule existed can still be read.
        #expect((try? JSONValue(stored: "[\"\(Self.marks(66))\"]")) != nil)
    }
}
