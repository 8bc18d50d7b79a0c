// Intervals under a key. A short list is in the order of arrival, or of lower bounds under a cell.
// A long one is in sorted chunks behind a directory (`PostingStore+Chunks`).
extension PostingStore {
    /// Files a subscription with an interval on one path, and possibly a program, under a key.
    ///
    /// `kind` is ``BlockKind/sorted`` for the key of a cell, otherwise ``BlockKind/range``.
    ///
    /// - Returns: Whether it shares the posting of an equal one, and whether it went into a
    ///   directory.
    func insertRange(
        _ key: FiledKey, _ kind: BlockKind, _ interval: IntervalKind, _ posting: RangePosting
    ) -> (isShared: Bool, isInDirectory: Bool) {
        var place = place(key, kind, interval: interval.word)
        let block = PostingBlock(arena, place.block)
        if block.kind == .directory {
            if block.count > 0 { return (insertIntoChunks(posting, &place), true) }
            // An empty first block is kept because it holds the key.
            block.setHeader(
                kind, sizeClass: block.sizeClass, keyLength: block.keyLength,
                hasNext: block.hasNext)
        }
        return kind == .sorted
            ? (insertSorted(posting, &place), false) : (insertUnsorted(posting, &place), false)
    }

    private func insertUnsorted(_ posting: RangePosting, _ place: inout BlockPlace) -> Bool {
        let block = PostingBlock(arena, place.block)
        if let equal = equal(posting, block, 0..<block.count) {
            share(equal, of: block, with: posting.word)
            return true
        }
        var index = block.count
        while index > 0 {
            let word = block.postings[(index - 1) * 6]
            let isAfter = word & PostingWord.idMask > posting.word & PostingWord.idMask
            guard word & PostingWord.group == 0, isAfter else { break }
            index -= 1
        }
        put(posting, at: index, &place)
        if PostingBlock(arena, place.block).count > Self.longestRange { sortIntoChunks(&place) }
        return false
    }

    private func insertSorted(_ posting: RangePosting, _ place: inout BlockPlace) -> Bool {
        let block = PostingBlock(arena, place.block)
        let start = Self.first(posting.low, block)
        let end = Self.reach(posting.low, block)
        if let equal = equal(posting, block, start..<end) {
            share(equal, of: block, with: posting.word)
            return true
        }
        put(posting, at: end, &place)
        if PostingBlock(arena, place.block).count > Self.longestSorted { sortIntoChunks(&place) }
        return false
    }

    private func put(_ posting: RangePosting, at index: Int, _ place: inout BlockPlace) {
        let opened = open(&place, at: index * 6, words: 6)
        posting.store(opened.postings + index * 6)
        postings.range += 1
    }

    /// Adds a subscription to the posting at `index`.
    func share(_ index: Int, of block: PostingBlock, with word: UInt32) {
        let joined = join(block.postings[index * 6], word)
        (PostingBlock(arena, block.offset).postings + index * 6)[0] = joined
    }

    /// Removes a subscription from intervals, and returns whether it was there.
    ///
    /// `low` is the lower bound under which it was filed, if known; without it, all intervals are
    /// searched.
    func removeRange(_ id: UInt32, low: Int64?, _ place: BlockPlace) -> Bool {
        let block = PostingBlock(arena, place.block)
        if block.kind == .directory { return removeFromChunks(id, low: low, place) }
        var within = 0..<block.count
        if block.kind == .sorted, let low {
            within = Self.first(low, block)..<Self.reach(low, block)
        }
        for index in within {
            let words = block.postings + index * 6
            guard let word = leave(words[0], id) else { continue }
            words[0] = word
            if word == 0 {
                close(place, at: index * 6, words: 6)
                postings.range -= 1
            }
            return true
        }
        return false
    }

    /// Returns the index of a posting with the same interval and program, or `nil`.
    func equal(_ posting: RangePosting, _ block: PostingBlock, _ within: Range<Int>) -> Int? {
        let words = block.postings
        for index in within {
            let other = words + index * 6
            if RangePosting.load(other + 2) == posting.low,
                RangePosting.load(other + 4) == posting.high, other[1] == posting.program
            {
                return index
            }
        }
        return nil
    }

    /// Returns the number of postings of a sorted block, or of entries of a directory, whose lower
    /// bound is at most `value`.
    @inline(__always)
    static func reach(_ value: Int64, _ block: PostingBlock) -> Int {
        let words = block.postings
        var low = 0
        var high = block.count
        while low < high {
            let middle = (low + high) / 2
            if RangePosting.load(words + middle * 6 + 2) <= value {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    /// Returns the index of the first posting of a sorted block whose lower bound is at least
    /// `value`.
    @inline(__always)
    static func first(_ value: Int64, _ block: PostingBlock) -> Int {
        value == .min ? 0 : reach(value - 1, block)
    }
}
