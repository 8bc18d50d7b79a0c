import RegularExpressions
import RelayModel
import Testing

@testable import PredicateLanguage

/// Texts are ordered by the code points of their composed forms, however they are spelled.
@Suite struct ComposedOrderTests {
    @Test(arguments: [
        ("가", "가x"), ("가x", "각"), ("\u{1100}\u{1161}", "가x"), ("e\u{301}", "éx"),
        ("\u{304B}\u{3099}", "が`"), ("\u{37E}", ";;"), ("\u{212B}", "Åa"),
        ("a\u{323}\u{302}", "ậı"), ("a", "a\u{301}"), ("qa", "q\u{323}"), ("", "\u{301}"),
        ("a\u{301}b", "á\u{323}"),
    ])
    func `a text comes before its extensions and before later letters`(
        first: String, second: String
    ) throws {
        #expect(ComposedOrder.order(first, second) == -1)
        #expect(ComposedOrder.order(second, first) == 1)
        #expect(ComposedOrder.order(first, first) == 0)
        let less = try RecordPredicate(format: "a < %@", arguments: [.string(second)])
        #expect(less.evaluate(on: ["a": .string(first)]) == .true)
        let most = try RecordPredicate(format: "a <= %@", arguments: [.string(first)])
        #expect(most.evaluate(on: ["a": .string(second)]) == .false)
    }

    @Test func `comparing piece by piece gives the order of the whole composed forms`() {
        let scalars: [Unicode.Scalar] = [
            "a", "b", "e", "q", "\u{E9}", "\u{E1}", "\u{301}", "\u{323}", "\u{302}", "\u{308}",
            "\u{1100}", "\u{1161}", "\u{11A8}", "\u{AC00}", "\u{AC01}", "\u{304B}", "\u{304C}",
            "\u{3099}", "\u{37E}", ";", "\u{212B}", "\u{C5}", "\u{1EAD}", "\u{9C7}", "\u{9BE}",
            "\u{1F600}", "\u{FE0F}", "\u{345}", "\u{3B1}",
        ]
        var state: UInt64 = 5
        func draw(_ count: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % count
        }
        func text() -> String {
            var text = String.UnicodeScalarView()
            for _ in 0..<draw(5) { text.append(scalars[draw(scalars.count)]) }
            return String(text)
        }
        for _ in 0..<20_000 {
            let start = text()
            let (left, right) = (start + text(), start + text())
            let (one, other) = (TextFolding.composed(left), TextFolding.composed(right))
            let isLess = one.utf8.lexicographicallyPrecedes(other.utf8)
            let expected = one.utf8.elementsEqual(other.utf8) ? 0 : isLess ? -1 : 1
            let order = ComposedOrder.order(left, right)
            #expect(order == expected, "\(left.unicodeScalars) \(right.unicodeScalars)")
        }
    }
}
