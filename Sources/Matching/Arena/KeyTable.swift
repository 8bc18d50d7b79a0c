import RelayModel

/// Maps a key's hash to the block of the key: open addressing over slots of eight bytes, with
/// linear probing, at most three quarters full.
///
/// A slot holds 32 bits of the key's hash and the offset of its block. The key itself is in the
/// block beside the postings, so that comparing it costs no further cache line. Two keys may share
/// the 32 bits, so a look-up goes on until the key in the block is equal.
///
/// Not safe for concurrent use: ``IndexCore`` is guarded as a whole.
final class KeyTable {
    /// The slots: the hash in the low half, the block in the high half; an empty slot is 0.
    @exclusivity(unchecked) private(set) var slots: UnsafeMutablePointer<UInt64>
    /// The number of slots (a power of two) minus one.
    @exclusivity(unchecked) private(set) var mask: Int
    /// The number of slots in use.
    @exclusivity(unchecked) private(set) var count = 0

    init(capacity: Int = 64) {
        slots = Region.map(capacity, of: UInt64.self)
        mask = capacity - 1
    }

    deinit {
        Region.unmap(slots, mask + 1)
    }

    /// The size of all slots in bytes.
    var bytes: Int { (mask + 1) * 8 }

    @inline(__always)
    static func hash(of slot: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: slot) }

    @inline(__always)
    static func block(of slot: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: slot >> 32) }

    /// Returns the index of the first slot with this hash at or after `start` in probing order, or
    /// -1 if the run of used slots ends first.
    @inline(__always)
    func next(_ hash: UInt32, from start: Int) -> Int {
        var index = start & mask
        while true {
            let slot = slots[index]
            if slot == 0 { return -1 }
            if Self.hash(of: slot) == hash { return index }
            index = (index + 1) & mask
        }
    }

    /// Changes the block of a slot.
    func set(_ index: Int, block: UInt32) {
        slots[index] = UInt64(block) << 32 | UInt64(Self.hash(of: slots[index]))
    }

    /// Adds a slot; the key must not have one yet.
    func insert(_ hash: UInt32, block: UInt32) {
        if (count + 1) * 4 > (mask + 1) * 3 { grow() }
        place(UInt64(block) << 32 | UInt64(hash))
        count += 1
    }

    /// Removes a slot and closes the gap in its run.
    func remove(at index: Int) {
        var hole = index
        var probe = (index + 1) & mask
        while slots[probe] != 0 {
            let home = Int(Self.hash(of: slots[probe])) & mask
            if (probe - home) & mask >= (probe - hole) & mask {
                slots[hole] = slots[probe]
                hole = probe
            }
            probe = (probe + 1) & mask
        }
        slots[hole] = 0
        count -= 1
    }

    private func place(_ slot: UInt64) {
        var index = Int(Self.hash(of: slot)) & mask
        while slots[index] != 0 { index = (index + 1) & mask }
        slots[index] = slot
    }

    private func grow() {
        let old = slots
        let oldCount = mask + 1
        slots = Region.map(oldCount * 2, of: UInt64.self)
        mask = oldCount * 2 - 1
        for index in 0..<oldCount where old[index] != 0 { place(old[index]) }
        Region.unmap(old, oldCount)
    }
}

// MARK: - Snapshots

extension KeyTable {
    /// Appends the slots to an image.
    func write(to image: inout ImageWriter) {
        image.append(UInt64(count))
        image.append(bytes: UnsafeRawBufferPointer(start: slots, count: bytes))
    }

    /// Fills an empty table from an image.
    ///
    /// - Throws: `ImageDamage` if the image is not one that ``write(to:)`` makes.
    func load(_ image: inout ImageReader) throws {
        let count = try image.count(0...Int(UInt32.max))
        let content = try image.run()
        let size = content.count / 8
        guard size * 8 == content.count, size.nonzeroBitCount == 1, count < size else {
            throw ImageDamage("the key table is not one of a power of two")
        }
        Region.unmap(slots, mask + 1)
        slots = Region.map(size, of: UInt64.self)
        mask = size - 1
        self.count = count
        content.withUnsafeBytes { raw in
            UnsafeMutableRawPointer(slots).copyMemory(
                from: raw.baseAddress.unsafelyUnwrapped, byteCount: raw.count)
        }
    }
}
