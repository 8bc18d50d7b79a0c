// Many intervals under one key are in chunks in the order of lower bounds, behind a directory whose
// entries tell a look-up what to skip.
extension PostingStore {
    /// The program in a directory's entry if the programs of the chunk's postings differ.
    static let mixedPrograms: UInt32 = 1

    func sortIntoChunks(_ place: inout BlockPlace) {
        let block = PostingBlock(arena, place.block)
        let interval = block.interval
        var sorted = (0..<block.count).map { RangePosting(block.postings + $0 * 6) }
        if block.kind != .sorted { sorted.sort { ($0.low, $0.word) < ($1.low, $1.word) } }
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

    /// Returns the directory's entry for a chunk: its block, its least lower bound and greatest
    /// upper bound, and the program if all its postings have the same one.
    private func summary(of chunk: PostingBlock) -> RangePosting {
        var entry = RangePosting(
            word: chunk.offset, program: chunk.postings[1], low: .max, high: .min)
        for index in 0..<chunk.count {
            let posting = RangePosting(chunk.postings + index * 6)
            entry.low = min(entry.low, posting.low)
            entry.high = max(entry.high, posting.high)
            if posting.program != entry.program { entry.program = Self.mixedPrograms }
        }
        return entry
    }

    /// Files a posting in the chunk for its lower bound, and returns whether it shares the posting
    /// of an equal one.
    func insertIntoChunks(_ posting: RangePosting, _ place: inout BlockPlace) -> Bool {
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
        put(posting, into: chunk)
        let entryWords = PostingBlock(arena, place.block).postings + target * 6
        var summary = RangePosting(entryWords)
        summary.low = min(summary.low, posting.low)
        summary.high = max(summary.high, posting.high)
        if summary.program != posting.program { summary.program = Self.mixedPrograms }
        summary.store(entryWords)
        return false
    }

    private func put(_ posting: RangePosting, into chunk: PostingBlock) {
        let words = chunk.postings
        let index = Self.reach(posting.low, chunk)
        let moved = (chunk.count - index) * 6
        if moved > 0 {
            (words + (index + 1) * 6).update(from: words + index * 6, count: moved)
        }
        posting.store(words + index * 6)
        chunk.count += 1
        postings.range += 1
    }

    /// Looks for an equal posting in the few chunks where it would have been filed.
    private func share(
        _ posting: RangePosting, _ directory: PostingBlock, near entry: Int
    ) -> Bool {
        for index in stride(from: entry, through: max(entry - 2, 0), by: -1) {
            let chunk = PostingBlock(arena, RangePosting(directory.postings + index * 6).word)
            let within = Self.first(posting.low, chunk)..<Self.reach(posting.low, chunk)
            if let equal = equal(posting, chunk, within) {
                share(equal, of: chunk, with: posting.word)
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

    /// Removes a subscription from the chunks that may hold its lower bound, or from any chunk
    /// without `low`; returns whether it was there.
    func removeFromChunks(_ id: UInt32, low: Int64?, _ place: BlockPlace) -> Bool {
        let directory = PostingBlock(arena, place.block)
        var entry = (low.map { Self.reach($0, directory) } ?? directory.count) - 1
        while entry >= 0 {
            let summary = RangePosting(directory.postings + entry * 6)
            let chunk = PostingBlock(arena, summary.word)
            var within = 0..<chunk.count
            if let low { within = Self.first(low, chunk)..<Self.reach(low, chunk) }
            for index in within {
                let words = chunk.postings + index * 6
                guard let word = leave(words[0], id) else { continue }
                words[0] = word
                if word == 0 { close(chunk, at: index, entry, place) }
                return true
            }
            // The chunk before this one may end with an equal bound.
            if let low, summary.low < low { return false }
            entry -= 1
        }
        return false
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
