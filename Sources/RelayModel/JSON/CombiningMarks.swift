extension StringProtocol {
    /// Whether more combining marks follow each other than any language writes.
    ///
    /// To compare or hash a text, its marks are put into their canonical order, run by run, and
    /// that takes the square of a run's length: 2 MB of marks would take half an hour. Unicode's
    /// own bound for streams is 30 (UAX #15, section 13); no text that comes in may have more than
    /// ``Limits/maximumMarksInARow``.
    ///
    /// - Complexity: O(*n*) in the length of the text.
    public var hasEndlessMarks: Bool {
        // Below U+0300 there are none.
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

private extension Unicode.Scalar {
    /// Whether canonical ordering may move it, or a part of what it is decomposed into.
    var isCombiningMark: Bool {
        switch value {
        // Most of the letters of the world, which need no look into the tables.
        case ..<0x300, 0x370..<0x483, 0x3100..<0xA66F, 0xAC00..<0xFB1E: false
        // Four whose own class is none, and whose parts have one.
        case 0x344, 0xF73, 0xF75, 0xF81: true
        default: properties.canonicalCombiningClass != .notReordered
        }
    }
}
