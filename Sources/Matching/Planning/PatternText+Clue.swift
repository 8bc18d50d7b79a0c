extension PatternText {
    /// What is known about the texts that match this pattern.
    var clue: KeyClue? {
        if prefix.utf8.count >= 3 || prefix.utf8.count >= longest.utf8.count, !prefix.isEmpty {
            return .prefix(prefix)
        }
        return longest.utf8.count >= 3 ? .part(longest) : nil
    }
}
