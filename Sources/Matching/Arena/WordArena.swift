import RelayModel

#if canImport(Glibc)
    import Glibc
#endif

/// Blocks of 32-bit words in one region of memory, named by their offset.
///
/// A block comes in one of a few sizes, four to each doubling; a freed block waits in the list of
/// its size. Offsets stay valid when the region grows, pointers do not: nobody keeps one across an
/// allocation.
///
/// Not safe for concurrent use: ``IndexCore`` is guarded as a whole.
final class WordArena {
    /// The first word; offset 0 is never a block and so means "none".
    @exclusivity(unchecked) private(set) var base: UnsafeMutablePointer<UInt32>
    /// Words in use or in free lists, and the place of the next new block.
    @exclusivity(unchecked) private(set) var top = 4
    /// Words in free lists.
    @exclusivity(unchecked) private(set) var freeWords = 0
    @exclusivity(unchecked) private var capacity: Int
    @exclusivity(unchecked) private var free = [UInt32](repeating: 0, count: WordArena.classes)

    /// No free block is of a larger class.
    @exclusivity(unchecked) private var largestFree = 0

    /// The free block that is being cut up.
    @exclusivity(unchecked) private var scrap: (start: UInt32, words: Int) = (0, 0)

    /// Blocks of up to this many words are cut from free ones.
    private static let small = 16
    /// Free blocks from this class on, 64 words, are cut up.
    private static let firstScrap = 16
    /// Size classes; the last holds 2^31 words.
    static let classes = 120
    /// Blocks must be named by 31 bits: the highest bit of a posting's first word is a flag.
    static let maximumWords = 1 << 31

    init() {
        capacity = 1 << 10
        base = Region.map(capacity, of: UInt32.self)
    }

    deinit {
        Region.unmap(base, capacity)
    }

    /// Bytes of live blocks and of free ones, without the room at the end that was never touched.
    var bytes: Int { top * 4 }

    /// The words of a block of class `sizeClass`.
    @inline(__always)
    static func words(ofClass sizeClass: Int) -> Int {
        (4 + sizeClass & 3) << (sizeClass >> 2)
    }

    /// The smallest class that holds `words`.
    @inline(__always)
    static func sizeClass(holding words: Int) -> Int {
        if words <= 4 { return 0 }
        let shift = Int.bitWidth - 3 - (words - 1).leadingZeroBitCount
        if shift <= 0 { return words - 4 }
        let step = (words - 1) >> shift
        return (shift << 2) + step - 3
    }

    /// Takes a block of class `sizeClass`; its words hold what they held before.
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

    /// Cuts a small block off a large free one: lists that grow leave many behind.
    private func carve(_ size: Int) -> UInt32 {
        if scrap.words < size, !takeScrap() { return bump(size) }
        let block = scrap.start
        scrap.start += UInt32(size)
        scrap.words -= size
        freeWords -= size
        return block
    }

    /// Takes the block to be cut up from the largest free ones; what is left of the last one is
    /// lost until then, at most ``small`` words.
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

    /// Gives back a block that nobody names any more.
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

/// Memory from the system in whole pages, zeroed; large regions ask for 2 MiB pages, because at a
/// million subscriptions a match costs its cache and TLB misses.
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

    /// Moves the first `used` words of a region to a larger one. (`mremap` would, without copying,
    /// but Swift does not import variadic functions.)
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
        // MADV_HUGEPAGE
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
    /// Appends the blocks, live and free, to an image.
    func write(to image: inout ImageWriter) {
        image.append(UInt64(freeWords))
        image.append(scrap.start)
        image.append(UInt64(scrap.words))
        for head in free { image.append(head) }
        image.append(bytes: UnsafeRawBufferPointer(start: base, count: top * 4))
    }

    /// Fills an arena that holds nothing from an image.
    ///
    /// - Throws: `ImageDamage` if it is not one of ``write(to:)``.
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
