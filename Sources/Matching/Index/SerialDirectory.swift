import RelayModel

/// The place where each subscription of a core is filed, as one word each.
///
/// The words are in pages of 64, so that consecutive numbers cost four bytes each. The word is the
/// hash of the subscription's only key, or the offset of a record with the hashes of its keys and
/// its programs, or ``unfiled``.
struct SerialDirectory: ~Copyable {
    private var pages: [UInt32: Int32] = [:]
    private var words: [UInt32] = []
    private var counts: [UInt8] = []
    private var free: [Int32] = []
    private var last: (page: UInt32, index: Int32) = (.max, 0)
    /// The number of subscriptions.
    private(set) var count = 0

    /// The word of a subscription that is saved but can never match.
    ///
    /// No block has this offset.
    static let unfiled: UInt32 = 1

    /// The memory in bytes.
    var bytes: Int { words.capacity * 4 + counts.capacity + pages.capacity * 9 }

    /// Returns the word of a subscription; 0 if it is not in the directory.
    mutating func word(_ id: UInt32) -> UInt32 {
        guard let page = find(id >> 6) else { return 0 }
        return words[Int(page) * 64 + Int(id & 63)]
    }

    /// Sets the word of a subscription; 0 removes it.
    mutating func set(_ id: UInt32, _ word: UInt32) {
        let page = find(id >> 6) ?? make(id >> 6)
        let index = Int(page) * 64 + Int(id & 63)
        let isNew = words[index] == 0
        words[index] = word
        if isNew == (word == 0) { return }
        count += word == 0 ? -1 : 1
        counts[Int(page)] = counts[Int(page)] &+ (word == 0 ? UInt8.max : 1)
        if counts[Int(page)] == 0 {
            pages[id >> 6] = nil
            free.append(page)
            last = (.max, 0)
        }
    }

    /// Calls `body` with each subscription, in no particular order.
    func forEach(_ body: (_ id: UInt32, _ word: UInt32) -> Void) {
        for (page, index) in pages {
            for offset in 0..<64 where words[Int(index) * 64 + offset] != 0 {
                body(page << 6 | UInt32(offset), words[Int(index) * 64 + offset])
            }
        }
    }

    private mutating func find(_ page: UInt32) -> Int32? {
        if last.page == page { return last.index }
        guard let index = pages[page] else { return nil }
        last = (page, index)
        return index
    }

    private mutating func make(_ page: UInt32) -> Int32 {
        let index = free.popLast() ?? Int32(counts.count)
        if Int(index) == counts.count {
            counts.append(0)
            words.append(contentsOf: repeatElement(0, count: 64))
        }
        pages[page] = index
        last = (page, index)
        return index
    }
}

// MARK: - Snapshots

extension SerialDirectory {
    /// Appends the words to an image.
    func write(to image: inout ImageWriter) {
        image.append(UInt64(pages.count))
        for (page, index) in pages {
            image.append(page)
            for offset in 0..<64 { image.append(words[Int(index) * 64 + offset]) }
        }
    }

    /// Fills an empty directory from an image.
    ///
    /// - Throws: `ImageDamage` if the image is not one that ``write(to:)`` makes.
    mutating func load(_ image: inout ImageReader) throws {
        let pageCount = try image.count(0...Int(Int32.max))
        words.reserveCapacity(pageCount * 64)
        pages.reserveCapacity(pageCount)
        for number in 0..<pageCount {
            pages[try image.word()] = Int32(number)
            var used = 0
            for _ in 0..<64 {
                let word = try image.word(UInt32.self)
                used += word == 0 ? 0 : 1
                words.append(word)
            }
            counts.append(UInt8(used))
            count += used
        }
        guard pages.count == pageCount else { throw ImageDamage("a page is there twice") }
    }
}
