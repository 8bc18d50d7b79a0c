package import RelayModel

/// What comparisons see of values, for an index that wants to look up what they would find.
package enum IndexedText {
    /// A text as comparisons under `options` see it: two texts are equal to such a comparison
    /// exactly if their folded forms are equal, and have the same order.
    ///
    /// Folding a composed text gives the same as folding the text it was composed from.
    package static func folded(
        _ text: String, _ options: RecordPredicate.TextOptions
    ) -> String {
        TextFolding.fold(text, options)
    }

    /// The composed form of a text (NFC), in time proportional to its length.
    package static func composed(_ text: String) -> String {
        TextFolding.composed(text)
    }

    /// The folded form of a text each of whose characters folds by itself, and the composed one
    /// where the options fold nothing; `nil` for any other text, with which ``folded(_:_:)`` takes
    /// ten times as long and more.
    package static func foldedSingly(
        _ text: String, _ options: RecordPredicate.TextOptions
    ) -> String? {
        SingleFolding.fold(text, options)
    }

    /// -1, 0 or 1 as `left` comes before, with or after `right` by their composed forms: Swift's
    /// own order takes some texts of Hangul for the same.
    package static func order(_ left: String, _ right: String) -> Int {
        ComposedOrder.order(left, right)
    }

    /// The words of a text as TOKENMATCHES and token search compare them, without stop words.
    package static func words(of text: String) -> [String] {
        TokenSearch.words(of: text)
    }
}

extension FieldValue {
    /// The value that a path of plain member names leads to, as a comparison under Apple's rules
    /// sees it; nil where there is none.
    package func value(at names: some Sequence<String>) -> FieldValue {
        var evaluation = Evaluation(record: self, variables: [:], now: nil)
        let steps = names.map { PreparedExpression.Step.member($0) }
        // Plain members never have an evaluation error.
        return (try? evaluation.follow(steps[...], from: self)) ?? .null
    }
}
