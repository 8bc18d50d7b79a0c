import Crypto
import FoundationEssentials
import Logging
import RelayModel
import StorageSQL
import StorageSQLite

/// One round of shipping, and the state that is kept between rounds.
struct ShippingRound {
    /// An unfinished copy of the file.
    private struct Copying {
        let chain: String
        let number: UInt64
        let since: UInt64
        var manifest: BaseManifest
        var offset = 0
        /// The next part, as it was read.
        ///
        /// The file changes: if only the answer of an attempt was lost, the part is already stored
        /// under its name, and a second attempt must send the same bytes.
        var part: [UInt8]?
    }

    private let shipper: LogShipper
    /// Whether the destination was examined since the start.
    private var isKnown = false
    private var copying: Copying?
    /// The last copy.
    ///
    /// The number of its parts is set once it is known.
    private var lastBase:
        (chain: String, moment: Timestamp, name: String, parts: Int?, since: UInt64)?
    /// Since when the destination has had no note.
    private var absence = NoteAbsence()
    /// Which segments to look for next.
    private var segmentLook = SegmentLook()
    /// When the last copy was last checked to be there.
    private var lookedAt: Timestamp?
    /// The number of consecutive rounds in which the clock was behind.
    private var roundsBehind = 0
    private var newestBase: UInt64 = 0
    private var lastShipped: LogSpool.Waiting?

    init(_ shipper: LogShipper) {
        self.shipper = shipper
    }

    private var spool: LogSpool { shipper.spool }
    private var destination: any BackupDestination { shipper.destination }

    /// Ships the log, and copies the file if a copy is due.
    mutating func run() async throws {
        try await look()
        checkClock()
        if spool.chainName == nil {
            copying = nil
            lastBase = nil
            newestBase = 0
            let name = BackupName.chain(begun: shipper.now(), shipper.randomBytes(8))
            try await shipper.store.beginChain(name)
            shipper.show { $0.chain = name }
        }
        try await shipLog()
        guard isBaseDue else { return try await checkBase() }
        try await makeBase()
    }

    /// Ships the segments that the closed store left, if the note at the place names this store.
    mutating func finish() async throws {
        if try await shipper.isClaimed() { try await look() }
        try await shipWaiting()
    }

    // MARK: What is there

    /// Verifies that the destination belongs to this store, and that the chain there continues with
    /// the segments that wait here.
    mutating func look() async throws {
        guard !isKnown else { return }
        try await shipper.claim()
        let catalogue = Catalogue(try await destination.names(below: ""))
        if let chain = spool.chainName {
            let bases = catalogue.bases.filter { $0.chain == chain }
            let last = catalogue.segments[chain]?.last?.sequence ?? 0
            let first = firstUnshipped
            // If a crash came after the upload and before the segment was released here, a segment
            // of the same name is at the destination.
            let names = Set(catalogue.segments[chain]?.map(\.name) ?? [])
            let isOurs =
                last <= spool.extent?.last ?? 0
                && spool.waiting.allSatisfy {
                    $0.sequence > last || names.contains(Self.name(of: $0).text)
                }
            let since = bases.last?.reach.since ?? spool.extent?.since ?? first
            if last + 1 < first {
                spool.end(because: gone(last + 1))
            } else if let lost = missing(from: since, in: catalogue, of: chain) {
                spool.end(because: gone(lost))
            } else if !isOurs || catalogue.isForked(chain) {
                spool.end(because: ShippingFailure.forked)
            } else if let base = bases.last {
                let name = BackupName.whole(chain: chain, base: base.number, base.reach)
                lastBase = (chain, base.reach.moment, name.text, nil, base.reach.since)
                lookedAt = shipper.now()
            }
            newestBase = catalogue.parts[chain]?.keys.max() ?? 0
            shipper.show { $0.chain = chain }
        }
        shipper.show { status in
            status.bases = catalogue.bases.count
            status.lastBase = catalogue.bases.last?.reach.moment
        }
        isKnown = true
    }

    /// The number of the first segment of the chain that was not shipped; it may not exist yet.
    private var firstUnshipped: UInt64 {
        // In this order, because a segment may be added in between; it then counts as waiting.
        let last = spool.extent?.last ?? 0
        return spool.waiting.first?.sequence ?? last + 1
    }

    /// Returns the first segment from `since` on, and before `end`, that was shipped and is no
    /// longer there.
    ///
    /// A copy that needs it could not be restored, even though the copy itself is whole.
    private func missing(
        from since: UInt64, before end: UInt64 = .max, in catalogue: Catalogue, of chain: String
    ) -> UInt64? {
        let first = min(firstUnshipped, end)
        let there = Set(catalogue.segments[chain]?.map(\.sequence) ?? [])
        return since < first ? (since..<first).first { !there.contains($0) } : nil
    }

    private func gone(_ segment: UInt64) -> String {
        "segment \(segment) is not at \(destination.place)"
    }

    /// How far the clock may be set back without ending the chain.
    private static let bearableStep = Duration.seconds(3600)

    /// Ends the chain if the clock was set back by more than an hour, as can happen when a machine
    /// starts.
    ///
    /// Until the clock had caught up, no copy would become due, and all commits would have the same
    /// moment.
    private mutating func checkClock() {
        guard let base = lastBase, base.chain == spool.chainName else { return }
        let newest = max(base.moment, lastShipped?.mark?.moment ?? base.moment)
        guard newest.duration(since: shipper.now()) > Self.bearableStep else {
            roundsBehind = 0
            return
        }
        roundsBehind += 1
        // A machine that has just started may not have synchronised its clock yet.
        guard shipper.settings.interval * roundsBehind >= Self.lookingInterval else { return }
        roundsBehind = 0
        spool.end(because: "the clock was set back by more than an hour")
    }

    /// How often to check that the last copy is still there.
    private static let lookingInterval = Duration.seconds(600)

    /// Ends the chain if its last copy, a part of it, or a segment that it needs was removed.
    ///
    /// Otherwise nothing could be restored from the chain, or nothing after that segment, until the
    /// next copy is due, perhaps a day later.
    private mutating func checkBase() async throws {
        guard let base = lastBase, base.chain == spool.chainName else { return }
        let now = shipper.now()
        // If the clock was set back, the check is due at once.
        if let lookedAt, now >= lookedAt, now.duration(since: lookedAt) < Self.lookingInterval {
            return
        }
        try await checkPlace()
        lookedAt = now
        guard let lack = try await lack(of: base.name, of: base.parts) else {
            return try await checkSegments(of: base.chain, from: base.since)
        }
        // What there is of other copies is not known any more either.
        isKnown = false
        spool.end(because: "\(lack) is no longer at \(destination.place)")
    }

    /// Returns what is missing of the last copy, whose manifest is `name`; `nil` if all of it is
    /// there.
    private mutating func lack(of name: String, of parts: Int?) async throws -> String? {
        let folder = name.lastIndex(of: "/").map { String(name[...$0]) } ?? name
        let names = try await destination.names(below: folder)
        guard names.contains(name) else { return "its copy" }
        var known = parts
        if known == nil {
            // The copy was made before this start, so the number of its parts is still unknown.
            let bytes = try await destination.get(name, atMost: BaseManifest.maximumBytes) ?? []
            known = BaseManifest(String(decoding: bytes, as: UTF8.self))?.parts.count
            lastBase?.parts = known
        }
        // A copy with an unreadable manifest counts as incomplete.
        guard let known else { return "the manifest of its copy" }
        let there = names.count { if case .part? = BackupName($0) { true } else { false } }
        return there < known ? "a part of its copy" : nil
    }

    /// Ends the chain if another relay ships it too, or if a segment of it was removed.
    ///
    /// The names of segments contain their moments, so neither of two relays would find a name
    /// taken, and nothing that both ship could be restored.
    private mutating func checkSegments(of chain: String, from since: UInt64) async throws {
        guard let last = spool.extent?.last else { return }
        for thousand in segmentLook.thousands(from: since, through: last) {
            let catalogue = Catalogue(
                try await destination.names(
                    below: BackupName.segments(of: chain, thousand: thousand)))
            guard !catalogue.isForked(chain) else {
                return spool.end(because: ShippingFailure.forked)
            }
            let (first, end) = (thousand * SegmentLook.size, (thousand + 1) * SegmentLook.size)
            guard let lost = missing(from: max(since, first), before: end, in: catalogue, of: chain)
            else { continue }
            isKnown = false
            return spool.end(because: gone(lost))
        }
    }

    /// Refuses to ship to a place without the note, or to look for copies there, such as the folder
    /// below a disk that is not mounted.
    private mutating func checkPlace() async throws {
        if try await shipper.isClaimed() {
            absence.end()
        } else if absence.isLong(at: shipper.now()) {
            // Somebody emptied the place. That the copy is gone too shows when it is looked for.
            try await shipper.claim()
        } else {
            throw ShippingFailure.noted(missingAt: destination.place)
        }
    }

    // MARK: The log

    /// Ships the log up to now.
    private mutating func shipLog() async throws {
        let began = shipper.now()
        let spool = spool
        try await blocking { spool.copy() }
        try await shipWaiting()
        guard let chain = spool.chainName, lastBase?.chain == chain else { return }
        shipper.show { $0.shippedUntil = began }
    }

    private mutating func shipWaiting() async throws {
        if !spool.waiting.isEmpty { try await checkPlace() }
        while let waiting = spool.waiting.first {
            try Task.checkCancellation()
            let spool = spool
            guard let segment = try await blocking({ spool.read(waiting) }) else { continue }
            try await put(Self.name(of: waiting), segment.bytes + SHA256.hash(data: segment.bytes))
            spool.letGo(waiting)
            lastShipped = waiting
            shipper.show { status in
                status.shippedSegments += 1
                status.shippedBytes += segment.bytes.count
                status.head = waiting.mark?.head ?? status.head
            }
        }
    }

    private static func name(of waiting: LogSpool.Waiting) -> BackupName {
        .segment(
            chain: waiting.chain, sequence: waiting.sequence,
            moment: waiting.mark?.moment ?? Timestamp(seconds: 0))
    }

    /// Writes an object whose name only this relay should use.
    ///
    /// If it is taken, the chain ends.
    private func put(_ name: BackupName, _ bytes: [UInt8]) async throws {
        do {
            try await destination.put(name.text, bytes)
        } catch {
            if error.kind == .taken {
                spool.end(because: ShippingFailure.forked)
            }
            throw error
        }
    }

    // MARK: Copies of the file

    private var isBaseDue: Bool {
        guard copying == nil, let last = lastBase, last.chain == spool.chainName else {
            return true
        }
        return shipper.now().duration(since: last.moment) >= shipper.settings.baseInterval
    }

    /// Copies the file part by part, and ships the log between the parts.
    ///
    /// Continues a copy that failed before.
    private mutating func makeBase() async throws {
        guard let extent = spool.extent else { return }
        if copying == nil {
            try await checkPlace()
            let catalogue = Catalogue(try await destination.names(below: ""))
            guard !catalogue.isForked(extent.chain) else {
                return spool.end(because: ShippingFailure.forked)
            }
            if let lost = missing(from: extent.since, in: catalogue, of: extent.chain) {
                isKnown = false
                return spool.end(because: gone(lost))
            }
            try await remove(catalogue.abandoned(before: newestBase + 1, of: extent.chain))
        }
        var base =
            copying
            ?? Copying(
                chain: extent.chain, number: newestBase + 1, since: extent.since,
                manifest: BaseManifest(store: shipper.store.storeIdentity.description))
        newestBase = base.number
        copying = base
        while let part = try await nextPart(of: base) {
            base.part = part
            copying = base
            let number = base.manifest.parts.count + 1
            try await put(
                .part(chain: base.chain, base: base.number, number: number), part)
            base.part = nil
            base.manifest.parts.append(
                BaseManifest.Part(bytes: part.count, hash: RequestSignature.hash(part)))
            base.offset += part.count
            copying = base
            try await shipLog()
            guard spool.chainName == base.chain else { return }
        }
        try await close(base)
    }

    private func nextPart(of base: Copying) async throws -> [UInt8]? {
        if let part = base.part { return part }
        let (store, size) = (shipper.store, shipper.settings.partBytes)
        let part = try await blocking { try store.fileBytes(at: base.offset, count: size) }
        return part.isEmpty ? nil : part
    }

    /// Declares a copy whole, after the log that completes it was shipped.
    private mutating func close(_ base: Copying) async throws {
        try await shipper.store.commitNothing()
        try await shipLog()
        // That commit is later than everything that was read of the file.
        guard spool.chainName == base.chain, let last = lastShipped, last.chain == base.chain,
            let moment = last.mark?.moment
        else { return }
        let reach = BaseReach(since: base.since, last: last.sequence, moment: moment)
        let name = BackupName.whole(chain: base.chain, base: base.number, reach)
        try await put(name, Array(base.manifest.text.utf8))
        copying = nil
        lastBase = (base.chain, moment, name.text, base.manifest.parts.count, base.since)
        lookedAt = shipper.now()
        let size = base.offset
        shipper.logger.info(
            "shipped a copy of the file",
            metadata: ["to": "\(destination.place)", "bytes": .stringConvertible(size)])
        shipper.show { status in
            status.lastBase = moment
            status.shippedUntil = moment
            status.bases += 1
        }
        try await forget(chain: base.chain)
    }

    /// Removes the objects that no kept copy needs.
    private func forget(chain: String) async throws {
        let catalogue = Catalogue(try await destination.names(below: ""))
        try await remove(
            catalogue.superfluous(keeping: shipper.settings.keptBases, current: chain))
        shipper.show {
            $0.bases = min(catalogue.bases.count, shipper.settings.keptBases)
        }
    }

    private func remove(_ names: [String]) async throws {
        for name in names {
            try Task.checkCancellation()
            try await destination.remove(name)
        }
    }
}
