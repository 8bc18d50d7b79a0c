/// The order of texts by the code points of their composed forms.
///
/// It differs from the order of Swift strings. Swift orders some texts before their own prefix if
/// the prefix ends with a Hangul syllable, and orders some texts wrongly that are not composed.
enum ComposedOrder {
    typealias Scalars = String.UnicodeScalarView

    /// Returns -1, 0 or 1 for the order of `left` and `right`.
    ///
    /// The cost is that of the common prefix, and of one letter with its marks.
    static func order(_ left: String, _ right: String) -> Int {
        if left.utf8Span.isKnownASCII, right.utf8Span.isKnownASCII {
            return left == right ? 0 : left < right ? -1 : 1
        }
        let (first, second) = (left.unicodeScalars, right.unicodeScalars)
        var (one, other) = (first.startIndex, second.startIndex)
        while one < first.endIndex, other < second.endIndex, first[one] == second[other] {
            first.formIndex(after: &one)
            second.formIndex(after: &other)
        }
        // A mark combines with the character before it, which is the same in both texts.
        var isApart = begins(first, one) && begins(second, other)
        while !isApart, one > first.startIndex {
            first.formIndex(before: &one)
            second.formIndex(before: &other)
            isApart = begins(first, one)
        }
        var composed = Pieces(scalars: first, index: one)
        var others = Pieces(scalars: second, index: other)
        while let scalar = composed.next() {
            guard let otherScalar = others.next() else { return 1 }
            if scalar != otherScalar { return scalar < otherScalar ? -1 : 1 }
        }
        return others.next() == nil ? 0 : -1
    }

    /// Returns whether the character at `index` does not combine with the one before it.
    private static func begins(_ scalars: Scalars, _ index: Scalars.Index) -> Bool {
        index == scalars.endIndex || begins(scalars[index])
    }

    /// Returns whether a character does not combine with the one before it.
    ///
    /// Marks do combine, and so do the later parts of a syllable that is written in parts.
    static func begins(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return true }
        switch scalar.value {
        // The later parts of syllables in Hangul and Kirat Rai.
        case 0x1160...0x11FF, 0xD7B0...0xD7FF, 0x16D40...0x16D7F: return false
        default: break
        }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: return false
        default: return true
        }
    }

    /// The composed form of a text from an index on, produced piece by piece.
    private struct Pieces {
        let scalars: Scalars
        var index: Scalars.Index
        private var piece: ArraySlice<Unicode.Scalar> = []

        init(scalars: Scalars, index: Scalars.Index) {
            self.scalars = scalars
            self.index = index
        }

        mutating func next() -> Unicode.Scalar? {
            if let scalar = piece.popFirst() { return scalar }
            guard index < scalars.endIndex else { return nil }
            let start = index
            scalars.formIndex(after: &index)
            var isAlone = true
            while index < scalars.endIndex, !ComposedOrder.begins(scalars[index]) {
                scalars.formIndex(after: &index)
                isAlone = false
            }
            // This is nearly always so. Composing a piece takes a microsecond.
            if isAlone, let known = SingleFolding.composed(scalars[start]) { return known }
            let text = String(scalars[start..<index])
            piece = Array(text.composedScalars)[...]
            return piece.popFirst()
        }
    }
}
