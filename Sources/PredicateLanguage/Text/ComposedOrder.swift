/// The order of texts by the code points of their composed forms.
///
/// That is not the order of Swift's texts, which puts a text before its own beginning where that
/// ends with a syllable of Hangul, and is mistaken about some that are not composed.
enum ComposedOrder {
    typealias Scalars = String.UnicodeScalarView

    /// -1, 0 or 1 as `left` comes before, with or after `right`.
    ///
    /// Cost: as far as the texts are the same, and one letter with its marks.
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
        // A mark goes together with what stands before it, which is the same in both.
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

    /// Whether nothing at `index` goes together with what stands before it.
    private static func begins(_ scalars: Scalars, _ index: Scalars.Index) -> Bool {
        index == scalars.endIndex || begins(scalars[index])
    }

    /// Marks go together with what stands before them, and so do the later parts of a syllable
    /// that is written in parts.
    static func begins(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return true }
        switch scalar.value {
        // Of Hangul, and of Kirat Rai.
        case 0x1160...0x11FF, 0xD7B0...0xD7FF, 0x16D40...0x16D7F: return false
        default: break
        }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: return false
        default: return true
        }
    }

    /// The composed form of what a text has from some index on, made piece by piece.
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
            // Nearly always; what is made takes a microsecond.
            if isAlone, let known = SingleFolding.composed(scalars[start]) { return known }
            let text = String(scalars[start..<index])
            piece = Array(text.composedScalars)[...]
            return piece.popFirst()
        }
    }
}
