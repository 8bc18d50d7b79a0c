package import RelayModel

/// Texts as comparisons see them, for an index that looks up what a comparison would find.
package enum IndexedText {
    /// Returns a text as comparisons under `options` see it.
    ///
    /// Such a comparison treats two texts as equal exactly if their folded forms are equal, and
    /// orders them as their folded forms.
    ///
    /// A text and its composed form have the same folded form.
    package static func folded(
        _ text: String, _ options: RecordPredicate.TextOptions
    ) -> String {
        TextFolding.fold(text, options)
    }

    /// Returns the composed form (NFC) of a text, in time proportional to its length.
    package static func composed(_ text: String) -> String {
        TextFolding.composed(text)
    }

    /// Returns the folded form of a text in which each character folds on its own, or the composed
    /// form if the options fold nothing.
    ///
    /// Returns `nil` for any other text. For such a text ``folded(_:_:)`` takes at least ten times
    /// as long.
    package static func foldedSingly(
        _ text: String, _ options: RecordPredicate.TextOptions
    ) -> String? {
        SingleFolding.fold(text, options)
    }

    /// Returns -1, 0 or 1 for the order of the composed forms of `left` and `right`.
    ///
    /// Swift's own order treats some different Hangul texts as equal.
    package static func order(_ left: String, _ right: String) -> Int {
        ComposedOrder.order(left, right)
    }

    /// Returns the words of a text as TOKENMATCHES and token search compare them, without stop
    /// words.
    package static func words(of text: String) -> [String] {
        TokenSearch.words(of: text)
    }
}

extension FieldValue {
    /// Returns the value at a path of plain member names, as a comparison under Apple's rules sees
    /// it.
    ///
    /// A missing value is nil.
    package func value(at names: some Sequence<String>) -> FieldValue {
        var evaluation = Evaluation(record: self, variables: [:], now: nil)
        let steps = names.map { PreparedExpression.Step.member($0) }
        // Plain members never have an evaluation error.
        return (try? evaluation.follow(steps[...], from: self)) ?? .null
    }
}
