import RelayModel

extension RecordPredicate.Comparison {
    /// Returns the token search that this comparison expresses in another of CloudKit's notations,
    /// or `nil` if it expresses none.
    ///
    /// A token search looks for words in all texts of a record.
    ///
    /// CloudKit reads `ANY tokenize:using:('some words', 'Cdl') IN allTokens`, the same with ALL,
    /// and TOKENMATCHES with its sides exchanged or with such a list. No record has a field named
    /// `allTokens`, so as ordinary comparisons they would never hold.
    ///
    /// - Throws: ``PredicateError`` if the search has more words than a condition has room for.
    func tokenSearch(
        within room: inout TextRoom
    ) throws(PredicateError) -> RecordPredicate.Node? {
        guard rules == .apple else { return nil }
        let allTokens = RecordPredicate.Expression.field("allTokens")
        switch (comparator, quantifier) {
        case (.tokenMatches, nil):
            if left == allTokens, let phrase = Self.tokenized(right) {
                return .comparison(search(for: phrase))
            }
            guard right == allTokens, let phrase = Self.tokenized(left) ?? Self.text(left) else {
                return nil
            }
            return .comparison(search(for: phrase))
        case (.in, let quantifier?):
            guard right == allTokens, let phrase = Self.tokenized(left) else { return nil }
            let whole = RecordPredicate.Node.comparison(search(for: phrase))
            switch quantifier {
            case .any: return whole
            case .none: return .not(whole)
            case .all:
                try room.take(phrase.utf8.count, at: span)
                let words = TokenSearch.words(of: phrase)
                try room.take(words.count * TextRoom.termBytes, at: span)
                // A search for stop words alone finds nothing.
                return words.isEmpty ? whole : .and(words.map { .comparison(search(for: $0)) })
            }
        default: return nil
        }
    }

    private static func tokenized(_ side: RecordPredicate.Expression) -> String? {
        guard case .call(.tokenize, let arguments) = side else { return nil }
        return arguments.first.flatMap(text)
    }

    private static func text(_ side: RecordPredicate.Expression) -> String? {
        if case .string(let text)? = side.literal { text } else { nil }
    }

    private func search(for phrase: String) -> Self {
        var search = self
        search.left = .field("allTokens")
        search.right = .constant(.string(phrase))
        search.comparator = .tokenMatches
        search.quantifier = nil
        search.options = [.ignoringCase, .ignoringDiacritics, .localeAware]
        if right == search.left {
            (search.leftSpan, search.rightSpan) = (rightSpan, leftSpan)
        }
        return search
    }
}
