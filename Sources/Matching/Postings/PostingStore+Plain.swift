// Lists of subscriptions that need no verification: those under a key, and groups.
extension PostingStore {
    /// Files a subscription under a key that proves its condition.
    func insertPlain(_ key: FiledKey, _ word: UInt32) {
        var place = place(key, .plain)
        insert(word, &place)
        postings.plain += 1
    }

    /// Inserts a subscription into an ascending list.
    func insert(_ word: UInt32, _ place: inout BlockPlace) {
        let block = PostingBlock(arena, place.block)
        let index = position(word & PostingWord.idMask, block)
        let opened = open(&place, at: index, words: 1)
        opened.postings[index] = word
    }

    /// Returns the index where a number is or belongs in an ascending list.
    func position(_ id: UInt32, _ block: PostingBlock) -> Int {
        let words = block.postings
        var low = 0
        var high = block.count
        if high > 0, words[high - 1] & PostingWord.idMask < id { return high }
        while low < high {
            let middle = (low + high) / 2
            if words[middle] & PostingWord.idMask < id { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Removes a subscription from an ascending list, and returns whether it was there.
    func removePlain(_ id: UInt32, _ place: BlockPlace) -> Bool {
        let block = PostingBlock(arena, place.block)
        let index = position(id, block)
        guard index < block.count, block.postings[index] & PostingWord.idMask == id else {
            return false
        }
        close(place, at: index, words: 1)
        return true
    }

    // MARK: Groups

    /// Adds a subscription to an existing posting.
    ///
    /// `word` is the posting's first word, which refers to a subscription or a group.
    ///
    /// - Returns: The word that must replace it.
    func join(_ word: UInt32, _ newcomer: UInt32) -> UInt32 {
        if word & PostingWord.group != 0 {
            var place = BlockPlace(slot: -1, previous: 0, block: word & ~PostingWord.group)
            insertIntoGroup(newcomer, &place)
            return place.block | PostingWord.group
        }
        let sizeClass = WordArena.sizeClass(holding: 5)
        let offset = arena.allocate(sizeClass: sizeClass)
        let block = PostingBlock(arena, offset)
        block.setHeader(.group, sizeClass: sizeClass, keyLength: 0, hasNext: false)
        block.base[2] = 0
        let isInOrder = word & PostingWord.idMask < newcomer & PostingWord.idMask
        block.postings[0] = isInOrder ? word : newcomer
        block.postings[1] = isInOrder ? newcomer : word
        block.count = 2
        return offset | PostingWord.group
    }

    private func insertIntoGroup(_ word: UInt32, _ place: inout BlockPlace) {
        let block = PostingBlock(arena, place.block)
        let index = position(word & PostingWord.idMask, block)
        let needed = block.count + 1
        if needed > block.room {
            let used = block.headerWords + block.count
            let sizeClass = max(
                WordArena.sizeClass(holding: 3 + needed), block.sizeClass + 2)
            let moved = arena.allocate(sizeClass: sizeClass)
            let (old, new) = (PostingBlock(arena, place.block), PostingBlock(arena, moved))
            new.base.update(from: old.base, count: used)
            new.setHeader(.group, sizeClass: sizeClass, keyLength: 0, hasNext: false)
            arena.release(place.block, sizeClass: old.sizeClass)
            place.block = moved
        }
        let target = PostingBlock(arena, place.block)
        let words = target.postings
        var last = target.count
        while last > index {
            words[last] = words[last - 1]
            last -= 1
        }
        words[index] = word
        target.count += 1
    }

    /// Removes a subscription from a posting.
    ///
    /// - Returns: The word that must replace the posting's first word, or 0 if no subscription is
    ///   left; `nil` if the subscription was not there.
    func leave(_ word: UInt32, _ id: UInt32) -> UInt32? {
        if word & PostingWord.group == 0 {
            return word & PostingWord.idMask == id ? 0 : nil
        }
        let block = PostingBlock(arena, word & ~PostingWord.group)
        let index = position(id, block)
        guard index < block.count, block.postings[index] & PostingWord.idMask == id else {
            return nil
        }
        let words = block.postings
        for place in index..<block.count - 1 { words[place] = words[place + 1] }
        block.count -= 1
        guard block.count == 1 else { return word }
        let last = words[0]
        arena.release(block.offset, sizeClass: block.sizeClass)
        return last
    }
}
