// Intervals under a key: a short list in the order of arrival, or sorted chunks behind a directory.
extension PostingStore {
    /// Files a subscription with an interval on one path, and possibly a program, under a key.
    ///
    /// - Returns: whether it shares the posting of an equal one.
    func insertRange(_ key: FiledKey, _ interval: IntervalKind, _ posting: RangePosting) -> Bool {
        var place = place(key, .range, interval: interval.word)
        let block = PostingBlock(arena, place.block)
        if block.kind == .directory { return insertIntoChunks(posting, &place) }
        if let equal = equal(posting, block) {
            let words = block.postings + equal * 6
            let word = join(words[0], posting.word)
            (PostingBlock(arena, place.block).postings + equal * 6)[0] = word
            return true
        }
        var index = block.count
        while index > 0 {
            let word = block.postings[(index - 1) * 6]
            let isAfter = word & PostingWord.idMask > posting.word & PostingWord.idMask
            guard word & PostingWord.group == 0, isAfter else { break }
            index -= 1
        }
        let opened = open(&place, at: index * 6, words: 6)
        posting.store(opened.postings + index * 6)
        postings.range += 1
        if opened.count > Self.longestRange { sortIntoChunks(&place) }
        return false
    }

    /// Takes a subscription out of intervals; says which program its posting named, or `nil` if it
    /// is not there.
    func removeRange(_ id: UInt32, _ place: BlockPlace) -> UInt32? {
        let block = PostingBlock(arena, place.block)
        if block.kind == .directory { return removeFromChunks(id, place) }
        for index in 0..<block.count {
            let posting = RangePosting(block.postings + index * 6)
            guard let word = leave(posting.word, id) else { continue }
            (block.postings + index * 6)[0] = word
            if word == 0 {
                close(place, at: index * 6, words: 6)
                postings.range -= 1
            }
            return posting.program
        }
        return nil
    }

    private func equal(_ posting: RangePosting, _ block: PostingBlock) -> Int? {
        let words = block.postings
        for index in 0..<block.count {
            let other = RangePosting(words + index * 6)
            if other.low == posting.low, other.high == posting.high,
                other.program == posting.program
            {
                return index
            }
        }
        return nil
    }

    // MARK: Chunks

    private func sortIntoChunks(_ place: inout BlockPlace) {
        let block = PostingBlock(arena, place.block)
        let interval = block.interval
        var sorted = (0..<block.count).map { RangePosting(block.postings + $0 * 6) }
        sorted.sort { ($0.low, $0.word) < ($1.low, $1.word) }
        let perChunk = Self.chunkCapacity / 2
        var entries: [RangePosting] = []
        for start in stride(from: 0, to: sorted.count, by: perChunk) {
            entries.append(makeChunk(sorted[start..<min(start + perChunk, sorted.count)]))
        }
        let directory = PostingBlock(arena, place.block)
        let (keyLength, hasNext) = (directory.keyLength, directory.hasNext)
        directory.setHeader(
            .directory, sizeClass: directory.sizeClass, keyLength: keyLength, hasNext: hasNext)
        directory.interval = interval
        directory.count = entries.count
        for (index, entry) in entries.enumerated() { entry.store(directory.postings + index * 6) }
    }

    private func makeChunk(_ sorted: ArraySlice<RangePosting>) -> RangePosting {
        let sizeClass = WordArena.sizeClass(holding: 3 + Self.chunkCapacity * 6)
        let offset = arena.allocate(sizeClass: sizeClass)
        let chunk = PostingBlock(arena, offset)
        chunk.setHeader(.chunk, sizeClass: sizeClass, keyLength: 0, hasNext: false)
        chunk.base[2] = 0
        chunk.count = sorted.count
        for (index, posting) in sorted.enumerated() { posting.store(chunk.postings + index * 6) }
        return summary(of: chunk)
    }

    /// The directory's entry for a chunk: its block, least lower and greatest upper bound.
    private func summary(of chunk: PostingBlock) -> RangePosting {
        var entry = RangePosting(word: chunk.offset, program: 0, low: .max, high: .min)
        for index in 0..<chunk.count {
            let posting = RangePosting(chunk.postings + index * 6)
            entry.low = min(entry.low, posting.low)
            entry.high = max(entry.high, posting.high)
        }
        return entry
    }

    /// The number of entries of a directory whose least lower bound is not above `value`.
    @inline(__always)
    static func reach(_ value: Int64, _ directory: PostingBlock) -> Int {
        let words = directory.postings
        var low = 0
        var high = directory.count
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

    private func insertIntoChunks(_ posting: RangePosting, _ place: inout BlockPlace) -> Bool {
        let directory = PostingBlock(arena, place.block)
        let entry = max(Self.reach(posting.low, directory) - 1, 0)
        if share(posting, directory, near: entry) { return true }
        var chunk = PostingBlock(arena, RangePosting(directory.postings + entry * 6).word)
        var target = entry
        if chunk.count == Self.chunkCapacity {
            split(chunk, entry, &place)
            let directory = PostingBlock(arena, place.block)
            let upper = RangePosting(directory.postings + (entry + 1) * 6)
            if posting.low >= upper.low { target = entry + 1 }
            chunk = PostingBlock(arena, RangePosting(directory.postings + target * 6).word)
        }
        var index = chunk.count
        let words = chunk.postings
        while index > 0, RangePosting.load(words + (index - 1) * 6 + 2) > posting.low { index -= 1 }
        let moved = (chunk.count - index) * 6
        if moved > 0 {
            (words + (index + 1) * 6).update(from: words + index * 6, count: moved)
        }
        posting.store(words + index * 6)
        chunk.count += 1
        postings.range += 1
        let entryWords = PostingBlock(arena, place.block).postings + target * 6
        var summary = RangePosting(entryWords)
        summary.low = min(summary.low, posting.low)
        summary.high = max(summary.high, posting.high)
        summary.store(entryWords)
        return false
    }

    /// Looks for an equal posting in the few chunks where it would have been put.
    private func share(
        _ posting: RangePosting, _ directory: PostingBlock, near entry: Int
    ) -> Bool {
        for index in stride(from: entry, through: max(entry - 2, 0), by: -1) {
            let chunk = PostingBlock(arena, RangePosting(directory.postings + index * 6).word)
            if let equal = equal(posting, chunk) {
                let words = chunk.postings + equal * 6
                let word = join(words[0], posting.word)
                (PostingBlock(arena, chunk.offset).postings + equal * 6)[0] = word
                return true
            }
        }
        return false
    }

    private func split(_ chunk: PostingBlock, _ entry: Int, _ place: inout BlockPlace) {
        let half = chunk.count / 2
        let upper = (half..<chunk.count).map { RangePosting(chunk.postings + $0 * 6) }
        let offset = chunk.offset
        chunk.count = half
        let upperEntry = makeChunk(upper[...])
        let lowerEntry = summary(of: PostingBlock(arena, offset))
        let directory = open(&place, at: (entry + 1) * 6, words: 6)
        lowerEntry.store(directory.postings + entry * 6)
        upperEntry.store(directory.postings + (entry + 1) * 6)
    }

    private func removeFromChunks(_ id: UInt32, _ place: BlockPlace) -> UInt32? {
        let directory = PostingBlock(arena, place.block)
        for entry in 0..<directory.count {
            let chunk = PostingBlock(arena, RangePosting(directory.postings + entry * 6).word)
            for index in 0..<chunk.count {
                let posting = RangePosting(chunk.postings + index * 6)
                guard let word = leave(posting.word, id) else { continue }
                (chunk.postings + index * 6)[0] = word
                if word == 0 { close(chunk, at: index, entry, place) }
                return posting.program
            }
        }
        return nil
    }

    private func close(
        _ chunk: PostingBlock, at index: Int, _ entry: Int, _ place: BlockPlace
    ) {
        let words = chunk.postings
        let moved = (chunk.count - index - 1) * 6
        if moved > 0 { (words + index * 6).update(from: words + (index + 1) * 6, count: moved) }
        chunk.count -= 1
        postings.range -= 1
        if chunk.count == 0 {
            arena.release(chunk.offset, sizeClass: chunk.sizeClass)
            close(place, at: entry * 6, words: 6)
        }
    }
}
