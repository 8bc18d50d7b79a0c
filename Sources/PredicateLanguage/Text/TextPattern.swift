import RelayModel

/// The right side of LIKE or MATCHES, ready for use.
enum TextPattern: Sendable {
    /// A pattern of `*` and `?`, and how texts are folded before they are matched.
    case like(LikePattern, RecordPredicate.TextOptions)
    /// A regular expression, and how texts are folded before they are matched, if they are.
    case expression(any CompiledExpression, RecordPredicate.TextOptions?)

    /// Prepares the pattern of a comparison.
    ///
    /// - Throws: ``RegularExpressionRefusal`` if it is broken, too long, or beyond what the
    ///   engine runs.
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

    /// How many instructions a regular expression has; `nil` for a pattern of `*` and `?`.
    var size: Int? {
        switch self {
        case .like: nil
        case .expression(let expression, _): expression.size
        }
    }

    /// Whether the whole of `text` matches; `nil` if it is too long for a pattern of this size.
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
    /// Whether marks are ignored, so that texts and patterns are folded before they are matched.
    var ignoresMarks: Bool {
        !contains(.normalized) && contains(.ignoringDiacritics)
    }
}
