#if canImport(Glibc)
    import Glibc
#endif

/// A key that is being saved or removed: the place of its bytes, and their hash.
struct FiledKey {
    var hash: UInt32
    var dimension: UInt32
    var bytes: UnsafePointer<UInt8>
    var length: Int
}

/// A block and the place of the reference to it: a slot of the table, or the block before it.
struct BlockPlace {
    var slot: Int
    /// The previous block of the key; 0 if the slot refers to the block.
    var previous: UInt32
    var block: UInt32
}

/// Keys and their postings, in a table and an arena.
///
/// Not safe for concurrent use: ``IndexCore`` is guarded as a whole.
final class PostingStore {
    let arena = WordArena()
    let table = KeyTable()
    /// The number of postings by kind of block; a group counts once.
    @exclusivity(unchecked) var postings = (plain: 0, range: 0, guarded: 0)

    /// The maximum number of intervals in the order of arrival; beyond it they are sorted into
    /// chunks, so that a look-up can skip those that cannot match.
    static let longestRange = 192
    /// The maximum number of intervals in a sorted block without chunks.
    static let longestSorted = 512
    static let chunkCapacity = 64

    // MARK: Keys

    /// Returns the slot of a key, or -1.
    @inline(__always)
    func slot(
        _ hash: UInt32, _ dimension: UInt32, _ bytes: UnsafePointer<UInt8>, _ length: Int
    )
        -> Int
    {
        var index = Int(hash)
        while true {
            index = table.next(hash, from: index)
            if index < 0 { return -1 }
            let block = PostingBlock(arena, KeyTable.block(of: table.slots[index]))
            if block.dimension == dimension, block.keyLength == length,
                memcmp(block.key, bytes, length) == 0
            {
                return index
            }
            index += 1
        }
    }

    /// Returns the block of a kind (and of one kind of interval) under a key, which is created if
    /// there is none.
    func place(_ key: FiledKey, _ kind: BlockKind, interval: UInt32 = 0) -> BlockPlace {
        let slot = slot(key.hash, key.dimension, key.bytes, key.length)
        guard slot >= 0 else { return makeHead(key, kind, interval) }
        var place = BlockPlace(
            slot: slot, previous: 0, block: KeyTable.block(of: table.slots[slot]))
        while true {
            let block = PostingBlock(arena, place.block)
            if matches(block, kind, interval) { return place }
            let next = block.next
            if next == 0 { break }
            place.previous = place.block
            place.block = next
        }
        return append(kind, interval, after: place)
    }

    private func matches(_ block: PostingBlock, _ kind: BlockKind, _ interval: UInt32) -> Bool {
        switch kind {
        case .range, .sorted:
            (block.kind == kind || block.kind == .directory) && block.interval == interval
        default: block.kind == kind
        }
    }

    private func makeHead(_ key: FiledKey, _ kind: BlockKind, _ interval: UInt32) -> BlockPlace {
        let keyWords = (key.length + 3) / 4
        let needed = 3 + keyWords + (kind.hasIntervals ? 1 : 0) + PostingBlock.stride(kind)
        let sizeClass = WordArena.sizeClass(holding: needed)
        let offset = arena.allocate(sizeClass: sizeClass)
        let block = PostingBlock(arena, offset)
        block.setHeader(kind, sizeClass: sizeClass, keyLength: key.length, hasNext: false)
        block.count = 0
        block.base[2] = key.dimension
        if keyWords > 0 { block.base[2 + keyWords] = 0 }
        memcpy(block.key, key.bytes, key.length)
        if kind.hasIntervals { block.interval = interval }
        table.insert(key.hash, block: offset)
        let slot = slot(key.hash, key.dimension, key.bytes, key.length)
        return BlockPlace(slot: slot, previous: 0, block: offset)
    }

    private func append(
        _ kind: BlockKind, _ interval: UInt32, after place: BlockPlace
    ) -> BlockPlace {
        let dimension = PostingBlock(arena, place.block).dimension
        let needed = 3 + (kind.hasIntervals ? 1 : 0) + PostingBlock.stride(kind)
        let sizeClass = WordArena.sizeClass(holding: needed)
        let offset = arena.allocate(sizeClass: sizeClass)
        let block = PostingBlock(arena, offset)
        block.setHeader(kind, sizeClass: sizeClass, keyLength: 0, hasNext: false)
        block.count = 0
        block.base[2] = dimension
        if kind.hasIntervals { block.interval = interval }
        var previous = place
        setNext(&previous, offset)
        return BlockPlace(slot: place.slot, previous: previous.block, block: offset)
    }

    // MARK: Chains

    /// Makes `next` the block after the one at `place`, which may move to make room for the
    /// reference.
    func setNext(_ place: inout BlockPlace, _ next: UInt32) {
        var block = PostingBlock(arena, place.block)
        if next == 0 {
            block.base[0] &= ~PostingBlock.nextFlag
            return
        }
        if !block.hasNext {
            if block.count * block.stride > block.room - 1 {
                grow(&place, holding: block.count * block.stride + 1)
                block = PostingBlock(arena, place.block)
            }
            block.base[0] |= PostingBlock.nextFlag
        }
        block.base[block.words - 1] = next
    }

    /// Moves the block at `place` to a larger one with room for `words` words of postings.
    ///
    /// It grows by about a quarter while it is small and doubles later, so that outgrown blocks do
    /// not add up.
    func grow(_ place: inout BlockPlace, holding words: Int) {
        let old = PostingBlock(arena, place.block)
        let used = old.headerWords + old.count * old.stride
        let needed = old.headerWords + words + (old.hasNext ? 1 : 0)
        let sizeClass = max(
            WordArena.sizeClass(holding: needed),
            old.sizeClass + (old.sizeClass < 16 ? 1 : 4))
        let moved = arena.allocate(sizeClass: sizeClass)
        replace(&place, by: moved, sizeClass: sizeClass, copying: used)
    }

    private func replace(
        _ place: inout BlockPlace, by moved: UInt32, sizeClass: Int, copying used: Int
    ) {
        let old = PostingBlock(arena, place.block)
        let new = PostingBlock(arena, moved)
        memcpy(new.base, old.base, used * 4)
        let (kind, keyLength, hasNext) = (old.kind, old.keyLength, old.hasNext)
        let next = old.next
        new.setHeader(kind, sizeClass: sizeClass, keyLength: keyLength, hasNext: hasNext)
        if hasNext { new.base[new.words - 1] = next }
        arena.release(place.block, sizeClass: old.sizeClass)
        name(moved, at: place)
        place.block = moved
    }

    private func name(_ block: UInt32, at place: BlockPlace) {
        if place.previous == 0 {
            table.set(place.slot, block: block)
        } else {
            let previous = PostingBlock(arena, place.previous)
            previous.base[previous.words - 1] = block
        }
    }

    /// Removes a block that has become empty; the key is removed with its last block.
    func drop(_ place: BlockPlace) {
        let block = PostingBlock(arena, place.block)
        let next = block.next
        if place.previous != 0 {
            var before = BlockPlace(slot: place.slot, previous: 0, block: place.previous)
            if next == 0 {
                setNext(&before, 0)
            } else {
                let previous = PostingBlock(arena, place.previous)
                previous.base[previous.words - 1] = next
            }
            arena.release(place.block, sizeClass: block.sizeClass)
            dropHeadIfEmpty(place.slot)
        } else if next == 0 {
            table.remove(at: place.slot)
            arena.release(place.block, sizeClass: block.sizeClass)
        }
        // An empty first block stays while others follow, because it holds the key.
    }

    private func dropHeadIfEmpty(_ slot: Int) {
        let offset = KeyTable.block(of: table.slots[slot])
        let block = PostingBlock(arena, offset)
        if block.count == 0, !block.hasNext {
            table.remove(at: slot)
            arena.release(offset, sizeClass: block.sizeClass)
        }
    }

    /// Makes room for `words` words at index `index` of the postings, and increments the count.
    func open(_ place: inout BlockPlace, at index: Int, words: Int) -> PostingBlock {
        var block = PostingBlock(arena, place.block)
        let used = block.count * block.stride
        if used + words > block.room {
            grow(&place, holding: used + words)
            block = PostingBlock(arena, place.block)
        }
        let start = block.postings + index
        if index < used { memmove(start + words, start, (used - index) * 4) }
        block.count += 1
        return block
    }

    /// Closes the gap of `words` words that a posting at `index` leaves, and decrements the count.
    func close(_ place: BlockPlace, at index: Int, words: Int) {
        let block = PostingBlock(arena, place.block)
        let used = block.count * block.stride
        let start = block.postings + index
        memmove(start, start + words, (used - index - words) * 4)
        block.count -= 1
        if block.count == 0 { drop(place) }
    }
}
