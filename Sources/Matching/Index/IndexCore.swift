import PredicateLanguage
import RelayModel

/// The postings of up to 2^28 subscriptions whose serials have the same upper bits.
///
/// Not safe for concurrent use: ``SubscriptionIndex`` admits any number of readers, or one writer.
final class IndexCore {
    let store = PostingStore()
    let programs: ProgramStore
    let planner: Planner
    @exclusivity(unchecked) var serials = SerialDirectory()
    /// The number of postings that were saved because an equal one existed.
    @exclusivity(unchecked) private(set) var shared = 0
    /// The number of subscriptions that are filed under their record type alone.
    @exclusivity(unchecked) private(set) var residuals = 0
    /// The number of evaluation errors by subscription, since the start.
    @exclusivity(unchecked) private(set) var errors: [UInt32: UInt64] = [:]

    /// The crowded keys, and what was known when they became crowded.
    @exclusivity(unchecked) var crowds = CrowdedKeys()
    /// The subscriptions that should be filed again.
    @exclusivity(unchecked) var misfilings = Misfilings()

    /// The number of edits so far, in debug builds.
    @exclusivity(unchecked) var edits = 0

    init(seed: UInt64) {
        programs = ProgramStore(arena: store.arena)
        planner = Planner(seed: seed, store: store, programs: programs)
    }

    /// The size in bytes of everything that grows with the subscriptions.
    var bytes: Int {
        store.arena.bytes + store.table.bytes + programs.table.bytes + serials.bytes
            + programs.references.reduce(0) { $0 + $1.bytes }
    }

    // MARK: Inserting

    /// Files a subscription, replacing one with the same number.
    ///
    /// Its cost is computed as if `former` were not filed.
    func insert(
        _ id: UInt32, _ subscription: IndexedSubscription, catalog: inout Catalog,
        insteadOf former: UInt32? = nil
    ) -> MatchingCost {
        takeOut(id)
        let cost = file(id, subscription, catalog: &catalog, insteadOf: former)
        assert(checkNowAndThen())
        return cost
    }

    private func file(
        _ id: UInt32, _ subscription: IndexedSubscription, catalog: inout Catalog,
        insteadOf former: UInt32?
    ) -> MatchingCost {
        let word = id | UInt32(subscription.firesOn.rawValue & 7) << PostingWord.firesShift
        let plan = catalog.makePlan(subscription.recordType)
        let compartment =
            subscription.database == .public && subscription.zoneID == nil
            ? 0 : catalog.makeCompartment(Compartment(subscription))
        let filing = planner.plan(
            subscription.predicate, plan: plan, compartment: compartment, catalog: &catalog)
        let count = planner.keys.count
        if count == 0 || word >> PostingWord.firesShift == 0 {
            releaseDrafts(filing)
            serials.set(id, SerialDirectory.unfiled)
            return MatchingCost(
                candidatesPerChange: 0, isResidual: false, keys: 0, unplaced: planner.unplaced)
        }
        var isInDirectory = false
        var crowd = 0
        // The number of keys under which it is verified, and how many of them have the subscription
        // that it replaces.
        var (places, formerPlaces) = (0, 0)
        // The share of changes that hit the crowded keys; `nil` if it is not known yet for one of
        // them.
        var share: Double? = 0
        for index in 0..<count {
            let key = planner.keys[index]
            let own = former.map { ownProgram(of: $0, under: key) } ?? 0
            let filed = file(key, word, filing)
            isInDirectory = filed.isInDirectory || isInDirectory
            // Hardly any change has a key of this kind.
            if planner.isHull(key.dimension) { continue }
            places += 1
            formerPlaces += own == 0 ? 0 : 1
            let others = self.crowd(under: key, filing, isShared: filed.isShared, beside: own)
            crowd = max(crowd, others)
            guard others >= Self.crowd else { continue }
            let hits = crowds.share(of: key.hash, plan: plan, planner.selectivity)
            share = share.flatMap { share in hits.map { share + $0 } }
        }
        serials.set(id, record(filing, isInDirectory))
        if filing.isResidual { residuals += 1 }
        var cost = MatchingCost(
            candidatesPerChange: expectation(of: filing, id, plan, crowded: share),
            isResidual: filing.isResidual, keys: count, crowd: crowd, unplaced: planner.unplaced)
        cost.isInPlace = places > 0 && formerPlaces == places
        return cost
    }

    /// Returns the expected share of changes for which the subscription is a candidate.
    ///
    /// It is the worst case, 1, if a crowded key is new and nothing is known about it yet.
    private func expectation(
        of filing: Filing, _ id: UInt32, _ plan: Int, crowded share: Double?
    ) -> Double {
        if filing.isResidual { return filing.expected }
        guard let share else {
            misfilings.noteUnproven(id, plan: plan)
            return 1
        }
        return min(max(filing.expected, share), 1)
    }

    /// Returns the number of other postings that are verified under a key, if this subscription has
    /// a posting of its own there.
    ///
    /// `own` is the program that the replaced subscription has under this key. An equal program
    /// under another key does not count as shared, because it runs once for each key.
    private func crowd(
        under planned: PlannedKey, _ filing: Filing, isShared: Bool, beside own: UInt32
    ) -> Int {
        let program = planned.isExact ? filing.rest : filing.whole
        guard program != 0, !isShared || program == own else { return 0 }
        let head = head(of: planned)
        guard head != 0 else { return 0 }
        return max(0, store.verified(in: head) - (own != 0 && !isShared ? 2 : 1))
    }

    /// Returns the program with which one subscription alone is verified under a key, or 0 if there
    /// is none.
    private func ownProgram(of id: UInt32, under planned: PlannedKey) -> UInt32 {
        let word = serials.word(id)
        // A posting that has only the hash of a key has no program.
        guard word != 0, word != SerialDirectory.unfiled, word & 1 << 31 == 0 else { return 0 }
        let block = PostingBlock(store.arena, word)
        let record = FilingRecord(block)
        guard (0..<record.keys).contains(where: { block.base[2 + $0] == planned.hash }) else {
            return 0
        }
        let head = head(of: planned)
        guard head != 0 else { return 0 }
        return [record.rest, record.whole].first { program in
            program != 0 && store.isAlone(id, program: program, in: head)
        } ?? 0
    }

    /// Returns the first block of a key, or 0 if nothing is filed under it.
    private func head(of planned: PlannedKey) -> UInt32 {
        let slot = store.slot(
            planned.hash, planned.dimension,
            UnsafePointer(planner.encoder.bytes.base + Int(planned.offset)), Int(planned.length))
        return slot < 0 ? 0 : KeyTable.block(of: store.table.slots[slot])
    }

    private func releaseDrafts(_ filing: Filing) {
        programs.release(filing.rest)
        programs.release(filing.whole)
    }

    /// Files a subscription under one key.
    ///
    /// - Returns: Whether it shares the posting of an equal subscription, and whether its interval
    ///   is one of so many that removal needs its lower bound to find it.
    private func file(
        _ planned: PlannedKey, _ word: UInt32, _ filing: Filing
    ) -> (isShared: Bool, isInDirectory: Bool) {
        let key = FiledKey(
            hash: planned.hash, dimension: planned.dimension,
            bytes: UnsafePointer(planner.encoder.bytes.base + Int(planned.offset)),
            length: Int(planned.length))
        let program = planned.isExact ? filing.rest : filing.whole
        var isShared = false
        var isInDirectory = false
        if let interval = filing.interval {
            var (kind, low, high) = interval.mirrored
            let isInCell = filing.isInCell && !planner.isHull(planned.dimension)
            if !isInCell { kind.cells = nil }
            (isShared, isInDirectory) = store.insertRange(
                key, isInCell ? .sorted : .range, kind,
                RangePosting(word: word, program: program, low: low, high: high))
        } else if program != 0 {
            isShared = store.insertGuarded(key, word, program: program)
        } else {
            store.insertPlain(key, word)
        }
        if isShared { shared += 1 }
        return (isShared, isInDirectory)
    }

    // MARK: Removing

    /// Returns the word that removal needs: the hash of the only key, or the offset of a record of
    /// all keys.
    private func record(_ filing: Filing, _ isInDirectory: Bool) -> UInt32 {
        let count = planner.keys.count
        let record = FilingRecord(
            filing, keys: count, needsBound: filing.isInCell || isInDirectory)
        if count == 1, record.isBare { return planner.keys[0].hash }
        let sizeClass = WordArena.sizeClass(holding: record.words)
        let offset = store.arena.allocate(sizeClass: sizeClass)
        let block = PostingBlock(store.arena, offset)
        record.store(in: block, sizeClass: sizeClass)
        for index in 0..<count { block.base[2 + index] = planner.keys[index].hash }
        return offset
    }

    /// Removes a subscription, and returns whether it was filed.
    func remove(_ id: UInt32) -> Bool {
        let isKnown = takeOut(id)
        assert(checkNowAndThen())
        return isKnown
    }

    @discardableResult
    private func takeOut(_ id: UInt32) -> Bool {
        let word = serials.word(id)
        if word == 0 { return false }
        serials.set(id, 0)
        errors[id] = nil
        if word == SerialDirectory.unfiled { return true }
        if word & 1 << 31 != 0 {
            unfile(id, hash: word, FilingRecord())
            return true
        }
        let block = PostingBlock(store.arena, word)
        let record = FilingRecord(block)
        for index in 0..<record.keys { unfile(id, hash: block.base[2 + index], record) }
        programs.release(record.rest)
        programs.release(record.whole)
        if record.isResidual { residuals -= 1 }
        store.arena.release(word, sizeClass: block.sizeClass)
        return true
    }

    /// Removes one posting of a subscription from a key with this hash.
    private func unfile(_ id: UInt32, hash: UInt32, _ record: FilingRecord) {
        var slot = store.table.next(hash, from: Int(hash))
        while slot >= 0 {
            var place = BlockPlace(
                slot: slot, previous: 0, block: KeyTable.block(of: store.table.slots[slot]))
            while true {
                let next = PostingBlock(store.arena, place.block).next
                if unfile(id, place, record) { return }
                if next == 0 { break }
                place.previous = place.block
                place.block = next
            }
            slot = store.table.next(hash, from: slot + 1)
        }
        assertionFailure("subscription \(id) is not where it was filed")
    }

    private func unfile(_ id: UInt32, _ place: BlockPlace, _ record: FilingRecord) -> Bool {
        switch PostingBlock(store.arena, place.block).kind {
        case .plain:
            guard store.removePlain(id, place) else { return false }
            store.postings.plain -= 1
            return true
        case .range, .directory, .sorted:
            return store.removeRange(id, low: record.low, place)
        case .guarded:
            return [record.rest, record.whole].contains { program in
                program != 0 && store.removeGuarded(id, program: program, place)
            }
        case .chunk, .group, .program, .filing: return false
        }
    }

    /// Adds evaluation errors that readers counted, for subscriptions that are still filed.
    func count(errors met: [UInt32: UInt64]) {
        for (id, count) in met where serials.word(id) != 0 { errors[id, default: 0] += count }
    }
}

extension Compartment {
    /// Creates the compartment to which a subscription's keys are limited.
    init(_ subscription: IndexedSubscription) {
        database = subscription.database
        owner = subscription.database == .public ? nil : subscription.owner
        zoneID = subscription.zoneID
    }
}

extension Interval {
    /// The bounds in the form in which they are filed.
    ///
    /// An interval that is only bounded above is mirrored, so that the bound that narrows it comes
    /// first.
    var mirrored: (kind: IntervalKind, low: Int64, high: Int64) {
        let isMirrored = !isBoundedBelow && isBoundedAbove
        var kind = IntervalKind(path: path, valueClass: valueClass, isMirrored: isMirrored)
        kind.cells = inCells
        return isMirrored ? (kind, ~high, ~low) : (kind, low, high)
    }
}

// MARK: - Snapshots

extension IndexCore {
    /// Appends the postings to an image.
    func write(to image: inout ImageWriter) {
        let postings = store.postings
        for number in [postings.plain, postings.range, postings.guarded, shared, residuals] {
            image.append(UInt64(number))
        }
        store.arena.write(to: &image)
        store.table.write(to: &image)
        programs.write(to: &image)
        serials.write(to: &image)
        planner.selectivity.write(to: &image)
        misfilings.write(to: &image)
    }

    /// Fills an empty core from an image.
    ///
    /// - Throws: `ImageDamage` if the image is not one that ``write(to:)`` makes, or
    ///   `PredicateError`.
    func load(_ image: inout ImageReader) throws {
        let all = 0...Int(Int64.max)
        store.postings = (try image.count(all), try image.count(all), try image.count(all))
        shared = try image.count(all)
        residuals = try image.count(all)
        try store.arena.load(&image)
        try store.table.load(&image)
        try programs.load(&image)
        try serials.load(&image)
        try planner.selectivity.load(&image)
        try misfilings.load(&image)
    }
}
