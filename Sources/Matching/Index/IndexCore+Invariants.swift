// The invariants that hold between any two edits; they are checked in debug builds only.
extension IndexCore {
    /// Checks the invariants now and then.
    ///
    /// It checks often while the index is small and seldom when it is large, so that the average
    /// cost of an edit does not depend on the size.
    func checkNowAndThen() -> Bool {
        edits &+= 1
        guard edits % (serials.count / 16 + 1) == 0 else { return true }
        let violation = violation()
        assert(violation == nil, violation ?? "")
        return violation == nil
    }

    /// Returns a description of the first violated invariant; `nil` if all hold.
    func violation() -> String? {
        var census = PostingCensus()
        for index in 0...store.table.mask where store.table.slots[index] != 0 {
            let slot = store.table.slots[index]
            if let found = chain(KeyTable.block(of: slot), KeyTable.hash(of: slot), &census) {
                return found
            }
        }
        var filed = 0
        var uses: [UInt32: Int] = [:]
        serials.forEach { _, word in
            if word == SerialDirectory.unfiled { return }
            guard word & 1 << 31 == 0 else { return filed += 1 }
            let record = FilingRecord(PostingBlock(store.arena, word))
            filed += record.keys
            for program in [record.rest, record.whole] where program != 0 {
                uses[program, default: 0] += 1
            }
        }
        if filed != census.subscriptions {
            return "\(filed) filings, \(census.subscriptions) found"
        }
        if census.plain != store.postings.plain || census.range != store.postings.range
            || census.guarded != store.postings.guarded
        {
            return "postings are counted wrongly: \(census), \(store.postings)"
        }
        for (program, count) in uses where programs.uses(program) != count {
            return "program \(program) has \(count) uses, not \(programs.uses(program))"
        }
        return uses.count == programs.table.count ? nil : "a program is used by nobody"
    }

    /// Checks the blocks of one key.
    private func chain(
        _ head: UInt32, _ hash: UInt32, _ census: inout PostingCensus
    ) -> String? {
        let first = PostingBlock(store.arena, head)
        let seed = KeyBytes.seed(planner.seed, first.dimension)
        if KeyHash.hash(first.key, first.keyLength, seed: seed) != hash {
            return "block \(head) stands under another key's hash"
        }
        var offset = head
        while offset != 0 {
            let block = PostingBlock(store.arena, offset)
            if block.count == 0, offset != head || !block.hasNext {
                return "block \(offset) is empty"
            }
            if block.count * block.stride > block.room { return "block \(offset) overflows" }
            if let found = content(of: block, &census) { return found }
            offset = block.next
        }
        return nil
    }

    private func content(of block: PostingBlock, _ census: inout PostingCensus) -> String? {
        switch block.kind {
        case .plain:
            census.plain += block.count
            census.subscriptions += block.count
            return ascends(block) ? nil : "block \(block.offset) is not ascending"
        case .guarded:
            census.guarded += block.count
            for index in 0..<block.count {
                census.subscriptions += members(block.postings[index * 2])
                let isAfter =
                    index == 0
                    || block.postings[index * 2 - 1] < block.postings[index * 2 + 1]
                if !isAfter { return "programs of block \(block.offset) are out of order" }
            }
            return nil
        case .range, .sorted: return intervals(block, &census)
        case .directory:
            for index in 0..<block.count {
                let entry = RangePosting(block.postings + index * 6)
                let chunk = PostingBlock(store.arena, entry.word)
                for index in 0..<chunk.count {
                    let posting = RangePosting(chunk.postings + index * 6)
                    if posting.low < entry.low || posting.high > entry.high {
                        return "an entry does not bound its chunk \(chunk.offset)"
                    }
                }
                if let found = intervals(chunk, &census) { return found }
            }
            return nil
        case .chunk, .group, .program, .filing: return "block \(block.offset) has no key"
        }
    }

    private func intervals(_ block: PostingBlock, _ census: inout PostingCensus) -> String? {
        census.range += block.count
        var last = Int64.min
        for index in 0..<block.count {
            let posting = RangePosting(block.postings + index * 6)
            census.subscriptions += members(posting.word)
            if block.kind != .range, posting.low < last {
                return "intervals of block \(block.offset) are out of order"
            }
            last = posting.low
        }
        return nil
    }

    /// Returns the number of subscriptions that a posting's first word refers to.
    private func members(_ word: UInt32) -> Int {
        guard word & PostingWord.group != 0 else { return 1 }
        return PostingBlock(store.arena, word & ~PostingWord.group).count
    }

    private func ascends(_ block: PostingBlock) -> Bool {
        (1..<max(block.count, 1)).allSatisfy {
            block.postings[$0 - 1] & PostingWord.idMask < block.postings[$0] & PostingWord.idMask
        }
    }
}

/// The counts of all postings that were found in the blocks.
struct PostingCensus {
    var plain = 0
    var range = 0
    var guarded = 0
    var subscriptions = 0
}
