// Subscriptions with a program are sorted by program under their key, so that equal programs are
// adjacent.
extension PostingStore {
    /// Files a subscription with a program under a key.
    ///
    /// - Returns: Whether it shares the posting of an equal one.
    func insertGuarded(_ key: FiledKey, _ word: UInt32, program: UInt32) -> Bool {
        var place = place(key, .guarded)
        let block = PostingBlock(arena, place.block)
        let index = guardedPosition(program, block)
        if index < block.count, block.postings[index * 2 + 1] == program {
            let joined = join(block.postings[index * 2], word)
            PostingBlock(arena, place.block).postings[index * 2] = joined
            return true
        }
        let opened = open(&place, at: index * 2, words: 2)
        opened.postings[index * 2] = word
        opened.postings[index * 2 + 1] = program
        postings.guarded += 1
        return false
    }

    /// Removes a subscription with a program, and returns whether it was there.
    func removeGuarded(_ id: UInt32, program: UInt32, _ place: BlockPlace) -> Bool {
        let block = PostingBlock(arena, place.block)
        let index = guardedPosition(program, block)
        guard index < block.count, block.postings[index * 2 + 1] == program,
            let word = leave(block.postings[index * 2], id)
        else { return false }
        block.postings[index * 2] = word
        if word == 0 {
            close(place, at: index * 2, words: 2)
            postings.guarded -= 1
        }
        return true
    }

    /// Whether a subscription, and no other one, has a posting with a program in the blocks of a
    /// key; one among so many intervals that they stand in chunks is not looked for.
    func isAlone(_ id: UInt32, program: UInt32, in head: UInt32) -> Bool {
        var offset = head
        while offset != 0 {
            let block = PostingBlock(arena, offset)
            switch block.kind {
            case .guarded:
                let index = guardedPosition(program, block)
                if index < block.count, block.postings[index * 2 + 1] == program,
                    block.postings[index * 2].names(id)
                {
                    return true
                }
            case .range, .sorted:
                for index in 0..<block.count {
                    let posting = RangePosting(block.postings + index * 6)
                    if posting.program == program, posting.word.names(id) { return true }
                }
            default: break
            }
            offset = block.next
        }
        return false
    }

    private func guardedPosition(_ program: UInt32, _ block: PostingBlock) -> Int {
        let words = block.postings
        var low = 0
        var high = block.count
        while low < high {
            let middle = (low + high) / 2
            if words[middle * 2 + 1] < program { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

private extension UInt32 {
    /// Whether the first word of a posting names one subscription alone, this one.
    func names(_ id: UInt32) -> Bool {
        self & PostingWord.group == 0 && self & PostingWord.idMask == id
    }
}
