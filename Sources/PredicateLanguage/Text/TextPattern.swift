import RelayModel

/// The prepared right side of LIKE or MATCHES.
enum TextPattern: Sendable {
    /// A pattern with `*` and `?`, and the options for folding texts.
    case like(LikePattern, RecordPredicate.TextOptions)
    /// A regular expression, and the options for folding texts, or `nil` if they are not folded.
    case expression(any CompiledExpression, RecordPredicate.TextOptions?)

    /// Creates the pattern of a comparison.
    ///
    /// - Throws: ``RegularExpressionRefusal`` if the pattern is malformed or too long, or the
    ///   engine does not support it.
    init(
        _ pattern: String, of comparison: RecordPredicate.Comparison,
        by engine: any RegularExpressionEngine
    ) throws(RegularExpressionRefusal) {
        guard pattern.utf8.count <= Limits.maximumRegularExpressionBytes else {
            throw RegularExpressionRefusal(
                "it is longer than \(Limits.maximumRegularExpressionBytes) bytes")
        }
        let options = comparison.options
        guard comparison.comparator == .like else {
            let source =
                options.ignoresMarks ? TextFolding.fold(pattern, .ignoringDiacritics) : pattern
            let ignoresCase = !options.contains(.normalized) && options.contains(.ignoringCase)
            self = .expression(
                try engine.compile(source, ignoringCase: ignoresCase),
                options.ignoresMarks ? .ignoringDiacritics : nil)
            return
        }
        let folded = TextFolding.fold(pattern, options)
        self = .like(LikePattern(folded.unicodeScalars.map(\.value), escaping: .signs), options)
    }

    /// The number of instructions of a regular expression, or `nil` for a pattern with `*` and `?`.
    var size: Int? {
        switch self {
        case .like: nil
        case .expression(let expression, _): expression.size
        }
    }

    /// Returns whether the pattern matches the whole of `text`, or `nil` if the text is too long
    /// for a pattern of this size.
    func matches(_ text: String) -> Bool? {
        switch self {
        case .like(let pattern, let options):
            pattern.matches(TextFolding.fold(text, options).unicodeScalars.lazy.map(\.value))
        case .expression(let expression, let options):
            expression.matchesWhole(options.map { TextFolding.fold(text, $0) } ?? text)
        }
    }
}

extension RecordPredicate.TextOptions {
    /// Whether marks are ignored, so that texts and patterns must be folded before they are
    /// matched.
    var ignoresMarks: Bool {
        !contains(.normalized) && contains(.ignoringDiacritics)
    }
}
