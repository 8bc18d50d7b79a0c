import RelayModel

/// The contents of an index: the catalog, and one core for every 2^28 serials.
///
/// `@unchecked Sendable`: ``SubscriptionIndex`` admits a thread to read only while it holds a
/// reading reader, and to write only while it holds all readers.
final class IndexContent: @unchecked Sendable {
    @exclusivity(unchecked) private(set) var catalog = Catalog()
    /// The cores by the upper bits of their serials, in ascending order.
    @exclusivity(unchecked) private(set) var cores: [(base: UInt64, core: IndexCore)] = []
    private var observed = IndexStatistics()
    let seed: UInt64

    init(seed: UInt64) {
        self.seed = seed
    }

    // MARK: Writing

    @discardableResult
    func insert(_ subscription: IndexedSubscription) -> MatchingCost {
        let core = core(of: subscription.serial)
        let id = UInt32(subscription.serial & UInt64(PostingWord.idMask))
        return core.insert(id, subscription, catalog: &catalog)
    }

    func remove(serial: UInt64) -> Bool {
        let base = serial & ~UInt64(PostingWord.idMask)
        guard let core = cores.first(where: { $0.base == base })?.core else { return false }
        return core.remove(UInt32(serial & UInt64(PostingWord.idMask)))
    }

    func cost(of subscription: IndexedSubscription, insteadOf former: UInt64?) -> MatchingCost {
        // Filing the subscription and removing it again cannot give another result than filing it.
        let core = cores.first?.core ?? self.core(of: 0)
        let mask = UInt64(PostingWord.idMask)
        let isHere = former.map { $0 & ~mask == cores.first?.base ?? 0 } ?? false
        let replaced = isHere ? former.map { UInt32($0 & mask) } : nil
        var id = PostingWord.idMask
        while core.serials.word(id) != 0 { id -= 1 }
        let before = catalog
        let cost = core.insert(id, subscription, catalog: &catalog, insteadOf: replaced)
        _ = core.remove(id)
        core.misfilings.forget(id, plan: catalog.makePlan(subscription.recordType))
        // Keys that no saved subscription uses must not be looked up.
        if catalog.version != before.version {
            catalog = before
            for (_, core) in cores { core.planner.forgetDimensions(from: before.dimensions.count) }
        }
        return cost
    }

    /// Returns subscriptions that would be filed or weighed better now, by what recent changes have
    /// shown.
    ///
    /// Each is returned once.
    func takeMisfiled(most: Int) -> [UInt64] {
        var serials: [UInt64] = []
        for (base, core) in cores where serials.count < most {
            serials += core.takeMisfiled(most: most - serials.count).map { base | UInt64($0) }
        }
        return serials
    }

    private func core(of serial: UInt64) -> IndexCore {
        let base = serial & ~UInt64(PostingWord.idMask)
        for (known, core) in cores where known == base { return core }
        let core = IndexCore(seed: seed)
        let place = cores.firstIndex { $0.base > base } ?? cores.count
        cores.insert((base, core), at: place)
        return core
    }

    // MARK: Reading

    func decode(_ change: RecordChange, now: Timestamp?, into decoded: DecodedChange) {
        ChangeDecoder(catalog: catalog, seed: seed).decode(change, now: now, into: decoded)
    }

    /// Decodes a change from its text in the log, and returns whether the text has the expected
    /// form.
    func decode(_ text: String, appendedAt: Timestamp, into decoded: DecodedChange) -> Bool {
        StoredChangeDecoder(catalog: catalog, seed: seed)
            .decode(text, appendedAt: appendedAt, into: decoded)
    }

    /// Decodes a change again if the catalog has grown since.
    @inline(__always)
    func refresh(_ decoded: DecodedChange) {
        guard decoded.catalogVersion != catalog.version, let source = decoded.source else {
            return
        }
        decode(source, now: decoded.now, into: decoded)
    }

    func match(
        _ decoded: DecodedChange, _ scratch: inout MatchScratch, into serials: inout [UInt64]
    ) -> DearChange? {
        serials.removeAll(keepingCapacity: true)
        scratch.steps = decoded.walkedSteps
        (scratch.asksFirst, scratch.unaskedSteps) = (false, 0)
        if !scratch.erring.isEmpty { scratch.erring.removeAll(keepingCapacity: true) }
        if !scratch.changeErrors.isEmpty { scratch.changeErrors.removeAll(keepingCapacity: true) }
        for (base, core) in cores {
            scratch.base = base
            core.match(decoded, &scratch)
            if scratch.steps > scratch.mostSteps {
                let costs = core.costs(&scratch, decoded.operation).map {
                    DearChange.Cost(serial: base | UInt64($0.id), steps: $0.steps)
                }
                // The errors are not those of the next change.
                scratch.errors.removeAll(keepingCapacity: true)
                serials.removeAll(keepingCapacity: true)
                return DearChange(steps: scratch.steps, costs: costs)
            }
            MatchOrder.sort(&scratch)
            MatchOrder.append(base, &scratch, to: &serials)
            if !scratch.errors.isEmpty { note(&scratch, base) }
        }
        if !scratch.changeErrors.isEmpty { keep(&scratch) }
        scratch.changes += 1
        scratch.matches += UInt64(serials.count)
        return nil
    }

    /// Returns the costs of a change for which finding values inside members took too many steps.
    ///
    /// They are charged to the subscriptions that use those paths.
    func dearWalk(_ decoded: DecodedChange) -> DearChange {
        let walked = catalog.plans[decoded.plan].walkedPaths
        var costs: [DearChange.Cost] = []
        for (base, core) in cores {
            var users = PathUsers(of: walked, plan: decoded.plan, core)
            users.find(catalog.dimensions)
            costs += users.costs(of: decoded.walkedSteps, base)
        }
        return DearChange(steps: decoded.walkedSteps, costs: costs)
    }

    /// Notes the errors that a core found on the current change.
    private func note(_ scratch: inout MatchScratch, _ base: UInt64) {
        for (id, count) in scratch.errors {
            scratch.changeErrors.append((base | UInt64(id), count))
        }
        scratch.errors.removeAll(keepingCapacity: true)
    }

    /// Counts the errors on the current change, which will not be matched again.
    private func keep(_ scratch: inout MatchScratch) {
        for (serial, count) in scratch.changeErrors {
            scratch.serialErrors[serial, default: 0] += count
            scratch.erring.append(serial)
        }
    }

    /// Keeps the keys of some changes as samples, from which writers learn.
    @inline(__always)
    func sample(_ decoded: DecodedChange, _ samples: inout KeySamples) {
        samples.turn &+= 1
        if samples.turn % KeySamples.interval == 0 || samples.turn <= KeySamples.first {
            keep(decoded, &samples)
        }
    }

    private func keep(_ decoded: DecodedChange, _ samples: inout KeySamples) {
        guard samples.kept + decoded.probes.count <= KeySamples.most else { return }
        let hashes = (0..<decoded.probes.count).map { decoded.probes[$0].hash }
        samples.hashes.append((decoded.plan, hashes))
        samples.kept += decoded.probes.count
    }

    // MARK: Taking over what readers left

    /// Takes over what a reader has collected: learns from its samples, and adds up its errors and
    /// costs.
    @inline(__always)
    func takeOver(_ reader: inout IndexReader.State) {
        if reader.scratch.changes != 0 { learn(&reader) }
    }

    private func learn(_ reader: inout IndexReader.State) {
        if !reader.samples.hashes.isEmpty {
            for (plan, hashes) in reader.samples.hashes {
                for (_, core) in cores { core.learn(hashes, plan: plan) }
            }
            reader.samples.hashes.removeAll(keepingCapacity: true)
            reader.samples.kept = 0
        }
        observed.changes += reader.scratch.changes
        observed.matches += reader.scratch.matches
        observed.candidates += reader.scratch.candidates
        observed.confirmed += reader.scratch.confirmed
        observed.runs += reader.scratch.runs
        (reader.scratch.changes, reader.scratch.matches) = (0, 0)
        (reader.scratch.candidates, reader.scratch.confirmed, reader.scratch.runs) = (0, 0, 0)
        for (serial, count) in reader.scratch.serialErrors {
            let base = serial & ~UInt64(PostingWord.idMask)
            let id = UInt32(serial & UInt64(PostingWord.idMask))
            cores.first { $0.base == base }?.core.count(errors: [id: count])
        }
        reader.scratch.serialErrors.removeAll(keepingCapacity: true)
    }

    var errors: [UInt64: UInt64] {
        var errors: [UInt64: UInt64] = [:]
        for (base, core) in cores {
            for (id, count) in core.errors { errors[base | UInt64(id)] = count }
        }
        return errors
    }

    var statistics: IndexStatistics {
        var sum = observed
        for (_, core) in cores {
            sum.subscriptions += core.serials.count
            sum.keys += core.store.table.count
            sum.plainPostings += core.store.postings.plain
            sum.rangePostings += core.store.postings.range
            sum.guardedPostings += core.store.postings.guarded
            sum.sharedPostings += core.shared
            sum.residuals += core.residuals
            sum.programs += core.programs.table.count
            sum.bytes += core.bytes
            sum.errors += core.errors.values.reduce(0, +)
        }
        return sum
    }
}

// MARK: - Snapshots

extension IndexContent {
    /// Appends the contents to an image.
    func write(to image: inout ImageWriter) throws {
        image.reserve(cores.reduce(4096) { $0 + $1.core.bytes })
        try catalog.write(to: &image)
        image.append(UInt64(cores.count))
        for (base, core) in cores {
            image.append(base)
            core.write(to: &image)
        }
    }

    /// Fills an empty index from an image.
    ///
    /// - Throws: `ImageDamage` if the image is not one that ``write(to:)`` makes, or the error of a
    ///   part.
    func load(_ image: inout ImageReader) throws {
        try catalog.load(&image)
        for _ in 0..<(try image.count(0...64)) {
            try core(of: try image.word()).load(&image)
        }
        guard image.isAtEnd else { throw ImageDamage("there are bytes after the index") }
    }
}
