/// Suggestions for mistyped words.
package enum NearestWord {
    /// The longest word in bytes that counts as mistyped; it also bounds the cost of a comparison.
    private static let longest = 64

    /// Returns the word in `words` that is nearest to `word`, ignoring case, or `nil` if none is
    /// near enough.
    ///
    /// A missing, extra or wrong letter counts as one slip, and so do two swapped letters. About a
    /// third of the letters may be slips, at most two.
    package static func to(_ word: String, among words: some Sequence<String>) -> String? {
        let typed = Array(word.lowercased().utf8)
        guard (2...longest).contains(typed.count) else { return nil }
        let allowed = min(2, max(1, (typed.count + 1) / 3))
        var best: (word: String, rank: (Int, Int, Int))?
        for candidate in words where candidate.utf8.count <= longest {
            let other = Array(candidate.lowercased().utf8)
            // The difference in length is a lower bound for the number of slips.
            guard abs(other.count - typed.count) <= allowed else { continue }
            let slips = slips(typed, other)
            guard slips <= allowed, slips <= best?.rank.0 ?? .max else { continue }
            // With an equal number of slips, a word with the same letters is preferred, then one
            // with the same capitals.
            let rank = (
                slips, typed.sorted() == other.sorted() ? 0 : 1,
                Self.slips(Array(word.utf8), Array(candidate.utf8))
            )
            if let known = best?.rank, known <= rank { continue }
            best = (candidate, rank)
        }
        return best?.word
    }

    /// Returns the number of slips between two words (the restricted Damerau-Levenshtein distance).
    private static func slips(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for row in 0..<left.count {
            var next = [row + 1]
            for column in 0..<right.count {
                let isEqual = left[row] == right[column]
                var cost = min(
                    last[column] + (isEqual ? 0 : 1), last[column + 1] + 1, next[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1],
                    left[row - 1] == right[column]
                {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                next.append(cost)
            }
            beforeLast = last
            last = next
        }
        return last[right.count]
    }
}
