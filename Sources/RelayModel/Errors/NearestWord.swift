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
        let (written, typed) = (Array(word.utf8), Array(word.lowercased().utf8))
        guard (2...longest).contains(typed.count) else { return nil }
        let allowed = min(2, max(1, (typed.count + 1) / 3))
        let letters = typed.sorted()
        var best: (word: String, rank: (Int, Int, Int))?
        for candidate in words where candidate.utf8.count <= longest {
            let other = Array(candidate.lowercased().utf8)
            // The difference in length is a lower bound for the number of slips.
            guard abs(other.count - typed.count) <= allowed,
                let slips = slips(
                    typed, other, shift: allowed, most: min(allowed, best?.rank.0 ?? allowed))
            else { continue }
            // With an equal number of slips, a word with the same letters is preferred, then one
            // with the same capitals.
            let rank = (
                slips, letters == other.sorted() ? 0 : 1,
                Self.capitalSlips(written, Array(candidate.utf8), allowed)
            )
            if let known = best?.rank, known <= rank { continue }
            best = (candidate, rank)
        }
        return best?.word
    }

    /// Returns the number of slips between two words, upper and lower case included.
    private static func capitalSlips(_ left: [UInt8], _ right: [UInt8], _ allowed: Int) -> Int {
        let most = left.count + right.count
        let shift = allowed + abs(left.count - right.count)
        return slips(left, right, shift: shift, most: most) ?? most
    }

    /// Returns the number of slips between two words (the restricted Damerau-Levenshtein distance),
    /// or `nil` if there are more than `most`.
    ///
    /// A letter is compared only with those at most `shift` places away, because each place costs a
    /// slip. So the cost grows with the length of the words, not with its square, and words that
    /// differ from their beginning cost a few comparisons.
    private static func slips(
        _ left: [UInt8], _ right: [UInt8], shift: Int, most: Int
    ) -> Int? {
        let beyond = left.count + right.count + 1
        var beforeLast = [Int](repeating: beyond, count: right.count + 1)
        var last = (0...right.count).map { $0 <= shift ? $0 : beyond }
        var next = beforeLast
        for row in 0..<left.count {
            let first = max(0, row - shift)
            let end = max(first, min(right.count, row + shift + 1))
            next[first] = first == 0 ? row + 1 : beyond
            var least = next[first]
            for column in first..<end {
                let isEqual = left[row] == right[column]
                var cost = min(
                    last[column] + (isEqual ? 0 : 1), last[column + 1] + 1, next[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1],
                    left[row - 1] == right[column]
                {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                next[column + 1] = cost
                least = min(least, cost)
            }
            if end < right.count { next[end + 1] = beyond }
            // A later row has no fewer slips than the least of this one.
            guard least <= most else { return nil }
            (beforeLast, last, next) = (last, next, beforeLast)
        }
        return last[right.count] <= most ? last[right.count] : nil
    }
}
