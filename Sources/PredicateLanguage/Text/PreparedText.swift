import RelayModel

/// A text that others are compared with for equality.
final class PreparedText: Sendable {
    /// What two texts must have in common.
    private enum Measure {
        /// Every byte.
        case bytes
        /// The folded form, which is the text here.
        case folded
    }

    private let text: String
    private let isASCII: Bool
    private let measure: Measure
    private let options: RecordPredicate.TextOptions

    /// Prepares to compare with `text`: by bytes where the options or the rules say so.
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

    /// Whether `other` is the same text.
    func isEqual(to other: String) -> Bool {
        if measure == .bytes { return text == other && text.utf8.elementsEqual(other.utf8) }
        if isASCII, other.utf8Span.isKnownASCII {
            return TextComparison.areEqual(text, other, options)
        }
        return text == TextFolding.fold(other, options)
    }
}
