import RelayModel

#if canImport(Glibc)
    import Glibc
#endif

/// Blocks of 32-bit words in one region of memory, identified by their offset.
///
/// A block has one of a few sizes, four for each doubling; a freed block goes to the free list of
/// its size. Offsets stay valid when the region grows, but pointers do not, so no pointer may be
/// kept across an allocation.
///
/// Not safe for concurrent use: ``IndexCore`` is guarded as a whole.
final class WordArena {
    /// The first word; offset 0 is never a block, so it means "none".
    @exclusivity(unchecked) private(set) var base: UnsafeMutablePointer<UInt32>
    /// The number of words in use or in free lists; also the offset of the next new block.
    @exclusivity(unchecked) private(set) var top = 4
    /// The number of words in free lists.
    @exclusivity(unchecked) private(set) var freeWords = 0
    @exclusivity(unchecked) private var capacity: Int
    @exclusivity(unchecked) private var free = [UInt32](repeating: 0, count: WordArena.classes)

    /// The largest class that may have a free block.
    @exclusivity(unchecked) private var largestFree = 0

    /// The free block that small blocks are cut from.
    @exclusivity(unchecked) private var scrap: (start: UInt32, words: Int) = (0, 0)

    /// Blocks of up to this number of words are cut from free ones.
    private static let small = 16
    /// Free blocks of this class (64 words) and larger ones may be cut up.
    private static let firstScrap = 16
    /// The number of size classes; the last holds 2^31 words.
    static let classes = 120
    /// The maximum number of words.
    ///
    /// Offsets have 31 bits, because the highest bit of a posting's first word is a flag.
    static let maximumWords = 1 << 31

    init() {
        capacity = 1 << 10
        base = Region.map(capacity, of: UInt32.self)
    }

    deinit {
        Region.unmap(base, capacity)
    }

    /// The size of live and free blocks in bytes, without the memory at the end that was never
    /// used.
    var bytes: Int { top * 4 }

    /// Returns the number of words in a block of class `sizeClass`.
    @inline(__always)
    static func words(ofClass sizeClass: Int) -> Int {
        (4 + sizeClass & 3) << (sizeClass >> 2)
    }

    /// Returns the smallest class that holds `words`.
    @inline(__always)
    static func sizeClass(holding words: Int) -> Int {
        if words <= 4 { return 0 }
        let shift = Int.bitWidth - 3 - (words - 1).leadingZeroBitCount
        if shift <= 0 { return words - 4 }
        let step = (words - 1) >> shift
        return (shift << 2) + step - 3
    }

    /// Returns a block of class `sizeClass`; its words keep their previous contents.
    func allocate(sizeClass: Int) -> UInt32 {
        let head = free[sizeClass]
        let size = Self.words(ofClass: sizeClass)
        if head != 0 {
            free[sizeClass] = base[Int(head)]
            freeWords -= size
            return head
        }
        if top + size > capacity { grow(holding: top + size) }
        return size <= Self.small ? carve(size) : bump(size)
    }

    private func bump(_ size: Int) -> UInt32 {
        if top + size > capacity { grow(holding: top + size) }
        let block = UInt32(top)
        top += size
        return block
    }

    /// Cuts a small block off a large free one, because lists that grow leave many large ones
    /// behind.
    private func carve(_ size: Int) -> UInt32 {
        if scrap.words < size, !takeScrap() { return bump(size) }
        let block = scrap.start
        scrap.start += UInt32(size)
        scrap.words -= size
        freeWords -= size
        return block
    }

    /// Takes one of the largest free blocks as scrap and returns whether there was one.
    ///
    /// The rest of the previous scrap, fewer than ``small`` words, is not used again.
    private func takeScrap() -> Bool {
        while largestFree >= Self.firstScrap {
            let block = free[largestFree]
            if block != 0 {
                scrap = (block, Self.words(ofClass: largestFree))
                free[largestFree] = base[Int(block)]
                return true
            }
            largestFree -= 1
        }
        return false
    }

    /// Frees a block, to which no reference may be left.
    func release(_ block: UInt32, sizeClass: Int) {
        base[Int(block)] = free[sizeClass]
        free[sizeClass] = block
        largestFree = max(largestFree, sizeClass)
        freeWords += Self.words(ofClass: sizeClass)
    }

    private func grow(holding words: Int) {
        precondition(words <= Self.maximumWords, "the index is full")
        let larger = max(capacity + capacity / 2, words)
        base = Region.remap(base, from: capacity, to: larger, used: top)
        capacity = larger
    }
}

/// Memory from the system in whole pages, zeroed.
///
/// Large regions ask for pages of 2 MiB, because with a million subscriptions, cache and TLB misses
/// dominate the cost of a match.
enum Region {
    private static let hugePage = 2 << 20

    static func map<Word>(_ count: Int, of type: Word.Type) -> UnsafeMutablePointer<Word> {
        let length = bytes(count, type)
        let address = mmap(
            nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        return bind(address, length, type)
    }

    static func unmap<Word>(_ start: UnsafeMutablePointer<Word>, _ count: Int) {
        munmap(start, bytes(count, Word.self))
    }

    /// Moves the first `used` words of a region to a larger region, and unmaps the old one.
    ///
    /// (`mremap` would avoid the copy, but Swift does not import variadic functions.)
    static func remap<Word>(
        _ start: UnsafeMutablePointer<Word>, from count: Int, to larger: Int, used: Int
    ) -> UnsafeMutablePointer<Word> {
        let moved = map(larger, of: Word.self)
        moved.update(from: start, count: used)
        unmap(start, count)
        return moved
    }

    private static func bind<Word>(
        _ address: UnsafeMutableRawPointer?, _ length: Int, _ type: Word.Type
    ) -> UnsafeMutablePointer<Word> {
        guard let address, address != MAP_FAILED else { fatalError("out of memory") }
        // The advice is MADV_HUGEPAGE.
        if length >= 2 * hugePage { madvise(address, length, 14) }
        return address.bindMemory(to: type, capacity: length / MemoryLayout<Word>.stride)
    }

    private static func bytes<Word>(_ count: Int, _ type: Word.Type) -> Int {
        let length = max(count * MemoryLayout<Word>.stride, 1)
        let page = length >= 2 * hugePage ? hugePage : 4096
        return (length + page - 1) / page * page
    }
}

// MARK: - Snapshots

extension WordArena {
    /// Appends the live and free blocks to an image.
    func write(to image: inout ImageWriter) {
        image.append(UInt64(freeWords))
        image.append(scrap.start)
        image.append(UInt64(scrap.words))
        for head in free { image.append(head) }
        image.append(bytes: UnsafeRawBufferPointer(start: base, count: top * 4))
    }

    /// Fills an empty arena from an image.
    ///
    /// - Throws: `ImageDamage` if the image is not one that ``write(to:)`` makes.
    func load(_ image: inout ImageReader) throws {
        freeWords = try image.count(0...Self.maximumWords)
        scrap.start = try image.word()
        scrap.words = try image.count(0...Self.maximumWords)
        for index in free.indices { free[index] = try image.word() }
        largestFree = free.lastIndex { $0 != 0 } ?? 0
        let content = try image.run()
        let words = content.count / 4
        guard words >= top, words * 4 == content.count, words <= Self.maximumWords else {
            throw ImageDamage("the arena has no whole words")
        }
        if words > capacity { grow(holding: words) }
        content.withUnsafeBytes { raw in
            UnsafeMutableRawPointer(base).copyMemory(
                from: raw.baseAddress.unsafelyUnwrapped, byteCount: raw.count)
        }
        top = words
    }
}
