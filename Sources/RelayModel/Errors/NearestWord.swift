/// What somebody who mistyped a word probably meant.
package enum NearestWord {
    /// Longer words are no slips of the hand.
    private static let longest = 64

    /// The one of `words` that is nearest to `word`, without regard to case, if it is near enough.
    ///
    /// Two letters that changed places are one slip, as is one that is missing, too many or wrong;
    /// a third of the letters may be slips, and two at most.
    package static func to(_ word: String, among words: some Sequence<String>) -> String? {
        let typed = Array(word.lowercased().utf8)
        guard (2...longest).contains(typed.count) else { return nil }
        let allowed = min(2, max(1, (typed.count + 1) / 3))
        var best: (word: String, rank: (Int, Int, Int))?
        for candidate in words where candidate.utf8.count <= longest {
            let other = Array(candidate.lowercased().utf8)
            // Each letter that is missing, or too many, is a slip.
            guard abs(other.count - typed.count) <= allowed else { continue }
            let slips = slips(typed, other)
            guard slips <= allowed, slips <= best?.rank.0 ?? .max else { continue }
            // Of several that are as near, one of the same letters was meant rather than one that
            // lacks some, and one whose capitals are the same rather than one of others.
            let rank = (
                slips, typed.sorted() == other.sorted() ? 0 : 1,
                Self.slips(Array(word.utf8), Array(candidate.utf8))
            )
            if let known = best?.rank, known <= rank { continue }
            best = (candidate, rank)
        }
        return best?.word
    }

    /// The slips that lie between two words (Damerau and Levenshtein's restricted distance).
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
