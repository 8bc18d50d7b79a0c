extension StringProtocol {
    /// Whether the text has more combining marks in a row than any language uses.
    ///
    /// To compare or hash a text, Swift puts each run of marks into canonical order, which takes
    /// quadratic time in the length of the run: 2 MB of marks would take half an hour. Unicode's
    /// own bound for streams is 30 (UAX #15, section 13). No incoming text may have more than
    /// ``Limits/maximumMarksInARow``.
    ///
    /// - Complexity: O(*n*) in the length of the text.
    public var hasEndlessMarks: Bool {
        // There are no combining marks below U+0300, whose first byte is 0xCC.
        guard !utf8.isASCII, utf8.contains(where: { $0 >= 0xCC }) else { return false }
        var run = 0
        for scalar in unicodeScalars {
            guard scalar.isCombiningMark else {
                run = 0
                continue
            }
            run += 1
            if run > Limits.maximumMarksInARow { return true }
        }
        return false
    }
}

extension String {
    /// Whether the text is composed for sure: it has characters below U+0300, Cyrillic letters and
    /// Chinese characters only.
    var isSurelyComposed: Bool {
        utf8.isASCII
            || utf8.allSatisfy { byte in
                switch byte {
                case 0x00..<0xCC, 0xD0, 0xD1, 0xE4...0xE9: true
                default: false
                }
            }
    }
}

private extension Unicode.Scalar {
    /// Whether canonical ordering may move this scalar, or a part of its decomposition.
    var isCombiningMark: Bool {
        switch value {
        // Ranges without marks, which cover most scripts and need no look-up in Unicode's tables.
        case ..<0x300, 0x370..<0x483, 0x3100..<0xA66F, 0xAC00..<0xFB1E: false
        // Four scalars of combining class 0 whose decompositions have marks of another class.
        case 0x344, 0xF73, 0xF75, 0xF81: true
        default: properties.canonicalCombiningClass != .notReordered
        }
    }
}
