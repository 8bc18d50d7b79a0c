import RelayModel

/// A constant text, prepared for tests of equality with other texts.
final class PreparedText: Sendable {
    /// The forms of two texts that must be equal.
    private enum Measure {
        /// The bytes of the texts.
        case bytes
        /// The folded forms. `text` is already folded.
        case folded
    }

    private let text: String
    private let isASCII: Bool
    private let measure: Measure
    private let options: RecordPredicate.TextOptions

    /// Creates a prepared text.
    ///
    /// Texts are compared by their bytes if the options or the rules require it.
    init(
        _ text: String, _ options: RecordPredicate.TextOptions, _ rules: RecordPredicate.RuleSet
    ) {
        self.options = options
        measure =
            options.contains(.normalized) || rules != .apple
            ? .bytes : .folded
        self.text = measure == .folded ? TextFolding.fold(text, options) : text
        isASCII = self.text.utf8Span.isKnownASCII
    }

    /// Returns whether `other` equals the text.
    func isEqual(to other: String) -> Bool {
        if measure == .bytes { return text == other && text.utf8.elementsEqual(other.utf8) }
        if isASCII, other.utf8Span.isKnownASCII {
            return TextComparison.areEqual(text, other, options)
        }
        return text == TextFolding.fold(other, options)
    }
}
