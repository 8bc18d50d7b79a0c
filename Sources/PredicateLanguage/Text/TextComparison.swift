/// Equality and order of texts under the options of a comparison.
enum TextComparison {
    /// Returns whether the texts are equal under `options`.
    ///
    /// Swift's equality is canonical equivalence, which is the same as equality of the composed
    /// forms.
    static func areEqual(
        _ left: String, _ right: String, _ options: RecordPredicate.TextOptions
    ) -> Bool {
        if options.contains(.normalized) { return left.utf8.elementsEqual(right.utf8) }
        guard options.folds else { return left == right }
        if left.utf8Span.isKnownASCII, right.utf8Span.isKnownASCII {
            return order(ascii: left, right, options) == 0
        }
        return order(
            composed: TextFolding.fold(left, options), TextFolding.fold(right, options)) == 0
    }

    /// Returns -1, 0 or 1 for the order of `left` and `right` by the code points of their composed
    /// forms.
    static func order(
        _ left: String, _ right: String, _ options: RecordPredicate.TextOptions
    ) -> Int {
        if options.contains(.normalized) {
            return left.utf8.elementsEqual(right.utf8)
                ? 0 : left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1
        }
        guard options.folds else { return ComposedOrder.order(left, right) }
        if left.utf8Span.isKnownASCII, right.utf8Span.isKnownASCII {
            return order(ascii: left, right, options)
        }
        return order(
            composed: TextFolding.fold(left, options), TextFolding.fold(right, options))
    }

    /// Returns the order of two composed texts.
    ///
    /// The order of UTF-8 is that of the code points.
    private static func order(composed left: String, _ right: String) -> Int {
        let first = left.utf8Span.span
        let second = right.utf8Span.span
        for index in 0..<min(first.count, second.count) where first[index] != second[index] {
            return first[index] < second[index] ? -1 : 1
        }
        return (first.count - second.count).signum()
    }

    private static func order(
        ascii left: String, _ right: String, _ options: RecordPredicate.TextOptions
    ) -> Int {
        let ignoresCase = options.contains(.ignoringCase)
        let first = left.utf8Span.span
        let second = right.utf8Span.span
        for index in 0..<min(first.count, second.count) {
            let a = ignoresCase ? first[index].asciiLowercased : first[index]
            let b = ignoresCase ? second[index].asciiLowercased : second[index]
            if a != b { return a < b ? -1 : 1 }
        }
        return (first.count - second.count).signum()
    }
}

extension UInt8 {
    /// The lower-case letter if this is an upper-case ASCII letter, else the byte itself.
    var asciiLowercased: UInt8 {
        self &- 0x41 < 26 ? self | 0x20 : self
    }
}

/// A text to search for in others: the right side of BEGINSWITH, ENDSWITH or CONTAINS.
///
/// A search takes time proportional to the sum of the two lengths (Knuth, Morris and Pratt).
final class TextNeedle: Sendable {
    /// The bytes of the folded form.
    private let bytes: [UInt8]
    private let options: RecordPredicate.TextOptions
    /// For each prefix of ``bytes``, the length of its longest proper border.
    ///
    /// Short needles have none.
    private let borders: [Int]

    /// The maximum length of needles for which a naive search is faster.
    private static let naiveLength = 16

    /// Creates a needle from a text.
    init(_ text: String, _ options: RecordPredicate.TextOptions) {
        self.options = options
        bytes = Array(TextFolding.fold(text, options).utf8)
        borders = bytes.count > Self.naiveLength ? bytes.borders : []
    }

    /// Whether the needle is empty.
    ///
    /// An empty needle is found nowhere.
    var isEmpty: Bool { bytes.isEmpty }

    /// The part of a text in which the needle must be found.
    enum Place {
        case start
        case end
        case anywhere
    }

    /// Returns whether `text` contains the needle at `place`.
    func isFound(in text: String, at place: Place) -> Bool {
        if bytes.isEmpty { return false }
        let utf8 = text.utf8Span
        if options.contains(.normalized) { return find(in: utf8.span, at: place, { $0 }) }
        if options.folds {
            // ASCII has no marks, and upper and lower case differ in one bit, so no folded copy is
            // needed.
            if utf8.isKnownASCII {
                return options.contains(.ignoringCase)
                    ? find(in: utf8.span, at: place, { $0.asciiLowercased })
                    : find(in: utf8.span, at: place, { $0 })
            }
            return find(in: TextFolding.fold(text, options).utf8Span.span, at: place, { $0 })
        }
        if TextFolding.isComposed(text) { return find(in: utf8.span, at: place, { $0 }) }
        return find(in: TextFolding.fold(text, options).utf8Span.span, at: place, { $0 })
    }

    @inline(__always)
    private func find(
        in text: Span<UInt8>, at place: Place, _ folded: (UInt8) -> UInt8
    ) -> Bool {
        guard bytes.count <= text.count else { return false }
        switch place {
        case .start: return stands(in: text, at: 0, folded)
        case .end: return stands(in: text, at: text.count - bytes.count, folded)
        case .anywhere: break
        }
        if !borders.isEmpty { return search(text, folded) }
        for offset in 0...(text.count - bytes.count) where folded(text[offset]) == bytes[0] {
            if stands(in: text, at: offset, folded) { return true }
        }
        return false
    }

    @inline(__always)
    private func stands(
        in text: Span<UInt8>, at offset: Int, _ folded: (UInt8) -> UInt8
    ) -> Bool {
        for index in bytes.indices where folded(text[offset + index]) != bytes[index] {
            return false
        }
        return true
    }

    @inline(__always)
    private func search(_ text: Span<UInt8>, _ folded: (UInt8) -> UInt8) -> Bool {
        var matched = 0
        for index in text.indices {
            let byte = folded(text[index])
            while matched > 0, bytes[matched] != byte { matched = borders[matched - 1] }
            if bytes[matched] == byte { matched += 1 }
            if matched == bytes.count { return true }
        }
        return false
    }
}

extension Array where Element: Equatable {
    /// For each prefix, the length of the longest shorter prefix that is also its suffix (Knuth,
    /// Morris and Pratt).
    var borders: [Int] {
        var borders = [Int](repeating: 0, count: count)
        var length = 0
        for index in indices.dropFirst() {
            while length > 0, self[length] != self[index] { length = borders[length - 1] }
            if self[length] == self[index] { length += 1 }
            borders[index] = length
        }
        return borders
    }
}
