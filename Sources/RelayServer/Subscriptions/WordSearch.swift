import RelayModel

/// Finds what mistyped names probably meant, for one request.
///
/// A request may have hundreds of conditions with dozens of unknown names each, and a record type
/// has a thousand fields. So the number of comparisons is limited; names beyond it get no
/// suggestion.
struct WordSearch {
    /// The maximum number of comparisons: some 50 ms at worst.
    private static let most = 40_000

    private var left = Self.most

    /// Returns the word in `words` that is nearest to `word`, as a question, or `nil` if none is
    /// near enough or if too much was compared already.
    mutating func hint(for word: String, among words: [String]) -> String? {
        guard words.count <= left else { return nil }
        left -= words.count
        return NearestWord.to(word, among: words).map { "did you mean \($0)?" }
    }
}
