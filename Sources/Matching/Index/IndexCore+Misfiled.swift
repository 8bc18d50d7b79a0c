import RelayModel

// What changes show after subscriptions were filed: keys that many changes hit, and keys that
// became crowded before anything was known about them. The owner of the predicates files such
// subscriptions again, a few at a time (``SubscriptionIndex/takeMisfiled(most:)``).

/// The subscriptions to be filed again, and the keys that were inspected for it.
struct Misfilings {
    /// By plan, the subscriptions that were filed under a crowded key while nothing was known about
    /// it.
    private(set) var unproven: [Int: [UInt32]] = [:]
    /// The subscriptions to be filed again, as a stack.
    private(set) var queue: [UInt32] = []
    /// The number of postings of hot keys when they were last inspected, by the keys' hashes.
    private var looked: [UInt32: Int] = [:]

    /// The maximum length of each list; further subscriptions stay as they are filed.
    static let most = 1 << 16
    /// The maximum number of hot keys in `looked`.
    private static let mostKeys = 4096

    /// The number of subscriptions that the queue can still take.
    var room: Int { Self.most - queue.count }

    mutating func noteUnproven(_ id: UInt32, plan: Int) {
        if unproven[plan, default: []].count < Self.most {
            unproven[plan, default: []].append(id)
        }
    }

    /// Removes a subscription that was noted last.
    mutating func forget(_ id: UInt32, plan: Int) {
        if unproven[plan]?.last == id { unproven[plan]?.removeLast() }
    }

    /// Queues the unproven subscriptions of a plan, now that more is known about its changes.
    mutating func decide(plan: Int) {
        guard let ids = unproven.removeValue(forKey: plan) else { return }
        queue += ids.prefix(room)
    }

    mutating func enqueue(_ id: UInt32) {
        if room > 0 { queue.append(id) }
    }

    /// Returns whether a hot key with this number of postings is worth inspecting: the first time,
    /// and whenever the number has doubled.
    mutating func looks(at hash: UInt32, postings: Int) -> Bool {
        guard postings >= 2 * looked[hash, default: 0] else { return false }
        if looked.count >= Self.mostKeys { looked.removeAll() }
        looked[hash] = postings
        return true
    }

    mutating func next() -> UInt32? { queue.popLast() }

    // MARK: Snapshots

    /// Appends the unproven subscriptions to an image, because their weights are still provisional.
    func write(to image: inout ImageWriter) {
        image.append(UInt64(unproven.count))
        for (plan, ids) in unproven {
            image.append(UInt64(plan))
            image.append(UInt64(ids.count))
            for id in ids { image.append(id) }
        }
    }

    /// Reads what ``write(to:)`` wrote.
    ///
    /// - Throws: `ImageDamage` if the image ends first.
    mutating func load(_ image: inout ImageReader) throws {
        for _ in 0..<(try image.count(0...Int(Int32.max))) {
            let plan = try image.count(0...Int(Int32.max))
            for _ in 0..<(try image.count(0...Self.most)) {
                noteUnproven(try image.word(), plan: plan)
            }
        }
    }
}

extension IndexCore {
    /// A key is hot if it is hit by at least this share of its record type's changes.
    static let hotShare = 0.02
    /// A key is crowded if it has at least this number of postings to verify.
    static let crowd = 64

    /// Learns from the keys of one change of a plan.
    func learn(_ hashes: [UInt32], plan: Int) {
        planner.selectivity.observe(hashes, plan: plan)
        // Repeated after every `Selectivity.enough` samples, because keys can become crowded at any
        // time.
        if planner.selectivity.samples(plan: plan) % Selectivity.enough == 0 {
            misfilings.decide(plan: plan)
        }
        guard planner.selectivity.knows(plan: plan) else { return }
        for hash in hashes {
            guard let share = planner.selectivity.expected(hash, plan: plan),
                share >= Self.hotShare
            else { continue }
            look(at: hash)
        }
    }

    /// Queues the subscriptions that have to be verified under a hot key, if they are many.
    private func look(at hash: UInt32) {
        var slot = store.table.next(hash, from: Int(hash))
        while slot >= 0 {
            let head = KeyTable.block(of: store.table.slots[slot])
            let count = store.verified(in: head)
            let dimension = PostingBlock(store.arena, head).dimension
            let hasChoice = !planner.isEvery(dimension) && !planner.isHull(dimension)
            if count >= Self.crowd, hasChoice, misfilings.looks(at: hash, postings: count) {
                store.forEachVerified(in: head) { misfilings.enqueue($0) }
            }
            slot = store.table.next(hash, from: slot + 1)
        }
    }

    /// Returns subscriptions to be filed again, each of them once.
    func takeMisfiled(most: Int) -> [UInt32] {
        var ids: [UInt32] = []
        while ids.count < most, let id = misfilings.next() {
            if serials.word(id) != 0 { ids.append(id) }
        }
        return ids
    }
}

extension PostingStore {
    /// Returns the number of postings of a key that are verified individually; those in chunks are
    /// estimated.
    func verified(in head: UInt32) -> Int {
        var count = 0
        var offset = head
        while offset != 0 {
            let block = PostingBlock(arena, offset)
            switch block.kind {
            case .guarded, .range, .sorted: count += block.count
            case .directory: count += block.count * Self.chunkCapacity / 2
            default: break
            }
            offset = block.next
        }
        return count
    }

    /// Calls `body` with each subscription that ``verified(in:)`` counts.
    func forEachVerified(in head: UInt32, _ body: (UInt32) -> Void) {
        var offset = head
        while offset != 0 {
            let block = PostingBlock(arena, offset)
            switch block.kind {
            case .guarded, .range, .sorted: forEachMember(of: block, body)
            case .directory:
                for index in 0..<block.count {
                    let entry = RangePosting(block.postings + index * 6)
                    forEachMember(of: PostingBlock(arena, entry.word), body)
                }
            default: break
            }
            offset = block.next
        }
    }

    private func forEachMember(of block: PostingBlock, _ body: (UInt32) -> Void) {
        for index in 0..<block.count {
            let word = block.postings[index * block.stride]
            guard word & PostingWord.group != 0 else {
                body(word & PostingWord.idMask)
                continue
            }
            let group = PostingBlock(arena, word & ~PostingWord.group)
            for member in 0..<group.count { body(group.postings[member] & PostingWord.idMask) }
        }
    }
}
