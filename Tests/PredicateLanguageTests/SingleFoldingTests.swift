import Testing

@testable import PredicateLanguage

/// Folding character by character must give the same as the standard library's normal forms.
@Suite struct SingleFoldingTests {
    private static let all: [RecordPredicate.TextOptions] = [
        [], .ignoringCase, .ignoringDiacritics, [.ignoringCase, .ignoringDiacritics],
    ]

    /// Returns the characters that fold by themselves.
    ///
    /// Of ideographs and syllables, which are many and alike, it takes every seventh.
    private func single(_ options: RecordPredicate.TextOptions) -> [Unicode.Scalar] {
        let all = [UInt32](0...0x33FF) + [UInt32](0xF900...0xFFFF)
        let alike = [UInt32](stride(from: 0x3400, through: 0x2FFFF, by: 7))
        return (all + alike).compactMap { Unicode.Scalar($0) }
            .filter { SingleFolding.fold(String(Character($0)), options) != nil }
    }

    private func disagree(_ text: String, _ options: RecordPredicate.TextOptions) -> Bool {
        guard let folded = SingleFolding.fold(text, options) else { return false }
        return !folded.utf8.elementsEqual(TextFolding.foldWholly(text, options).utf8)
    }

    @Test(arguments: all)
    func `each character alone folds as in the standard library`(
        options: RecordPredicate.TextOptions
    ) {
        let scalars = single(options)
        #expect(scalars.count > 10_000)
        let wrong = scalars.filter { disagree(String(Character($0)), options) }
        #expect(wrong == [])
    }

    @Test(arguments: all)
    func `characters fold as in the standard library beside any others`(
        options: RecordPredicate.TextOptions
    ) {
        let scalars = single(options)
        // Letters and punctuation are drawn more often than the many ideographs.
        let letters = scalars.filter { $0.value < 0x3400 }
        var state: UInt64 = 11
        func draw(_ count: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % count
        }
        for _ in 0..<20_000 {
            var text = String.UnicodeScalarView()
            for _ in 0..<6 {
                let pool = draw(4) == 0 ? scalars : letters
                text.append(pool[draw(pool.count)])
            }
            let isWrong = disagree(String(text), options)
            #expect(!isWrong, "\(String(text))")
        }
    }

    @Test func `most texts fold character by character, but not those with marks or jamo`() {
        let both: RecordPredicate.TextOptions = [.ignoringCase, .ignoringDiacritics]
        #expect(SingleFolding.fold("ÉΆйЩガ한“漢”， 😀!", both) == "eαищガ한“漢”， 😀!")
        #expect(SingleFolding.fold("ÉΆйЩ", .ignoringCase) == "éάйщ")
        #expect(SingleFolding.fold("Ấ", .ignoringCase) == "ấ")
        for text in ["a\u{301}", "\u{1100}\u{1161}", "가\u{11A8}", "か\u{3099}", "\u{300}"] {
            #expect(SingleFolding.fold(text, []) == nil)
            #expect(SingleFolding.fold(text, .ignoringCase) == nil)
        }
        for text in ["\u{1100}\u{1161}", "가\u{11A8}", "か\u{3099}", "가\u{301}\u{11A8}"] {
            #expect(SingleFolding.fold(text, both) == nil)
        }
        // Marks that are ignored leave nothing behind.
        #expect(SingleFolding.fold("Ấa\u{301}\u{323}가\u{301}\u{300}", both) == "aa가")
        #expect(SingleFolding.fold("A\u{338}\u{301}", .ignoringDiacritics) == "A")
        #expect(SingleFolding.canFold("a\u{301}", both))
        #expect(!SingleFolding.canFold("a\u{301}", []))
        // These characters fold to two.
        for text in ["\u{130}", "\u{1FB3}"] {
            #expect(SingleFolding.fold(text, .ignoringCase) == nil)
        }
    }
}
