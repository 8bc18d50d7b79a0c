import Crypto
package import RelayModel
import Storage
package import StorageSQLite

/// Rebuilds the store's file from a destination.
package struct BackupReading: Sendable {
    /// A rebuilt file.
    package struct Outcome: Sendable {
        /// The copy that the file was made from.
        package let base: Catalogue.Base
        /// The last commit in the file.
        package let mark: LogMark
        /// The first commit in the backup that the file does not contain, if there is one.
        package let next: LogMark?
        /// If a moment was requested: the moment of the first later copy in another chain.
        package let later: Timestamp?
        /// The damaged or missing objects of later copies, which were skipped for that reason.
        package let passedOver: [String]
    }

    private let destination: any BackupDestination

    /// The place that is read.
    var place: String { destination.place }

    package init(_ destination: any BackupDestination) {
        self.destination = destination
    }

    /// Returns the catalogue of the destination.
    package func catalogue() async throws(DestinationFailure) -> Catalogue {
        Catalogue(try await destination.names(below: ""))
    }

    /// Rebuilds the file at `path`, which must not exist, as of `moment`, or as of the last commit.
    ///
    /// If a copy is damaged, the copy before it in the same chain is used with the log since then,
    /// which loses nothing. If commits would be lost, the rebuild is refused, and the error offers
    /// the last moment that can be restored.
    ///
    /// The file is not a usable store yet: it still has the identity of the store that it was
    /// copied from.
    ///
    /// - Throws: ``BackupRefusal``, ``DestinationFailure`` or ``Storage/StorageError``. The part
    ///   that was written stays at `path`.
    package func rebuild(at path: String, asOf moment: Timestamp?) async throws -> Outcome {
        let names = try await destination.names(below: "")
        let catalogue = Catalogue(names)
        let furthest = try await furthestChain(of: catalogue)
        // If two chains contain the moment, one of them may have been written while the clock was
        // ahead.
        let isReached = catalogue.bases.contains {
            $0.chain == furthest && $0.reach.moment <= moment ?? .latest
        }
        let bases = try catalogue.fitting(
            asOf: moment, of: isReached ? furthest : nil, place: place)
        var passedOver: [BackupRefusal] = []
        do {
            var file = try FileRebuilding(at: path, through: moment ?? .latest)
            for base in bases {
                // A copy with later moments than those of the furthest chain was made while the
                // clock was ahead.
                let later = moment.flatMap { moment in
                    base.chain == furthest ? nil : catalogue.laterCopy(than: base, after: moment)
                }
                let plan = try RebuildingPlan(
                    catalogue, of: base, asOf: moment, before: later, place: place)
                let parts: BaseManifest
                do {
                    parts = try await self.manifest(of: base).get()
                    try await fetch(base, parts, into: &file)
                } catch let refusal as BackupRefusal {
                    passedOver.append(refusal)
                    try file.empty()
                    continue
                }
                try await lay(plan, of: parts.store, asOf: moment, into: &file)
                try file.finish()
                guard let mark = file.mark else {
                    throw BackupRefusal("\(destination.place): no commit could be restored")
                }
                return Outcome(
                    base: base, mark: mark, next: file.next, later: later,
                    passedOver: passedOver.map(\.description))
            }
        } catch let refusal as BackupRefusal {
            passedOver.append(refusal)
        }
        throw try await offering(passedOver, among: names, before: moment)
    }

    /// Applies the log to a copy.
    private func lay(
        _ plan: RebuildingPlan, of store: String, asOf moment: Timestamp?,
        into file: inout FileRebuilding
    ) async throws {
        var reached: Timestamp?
        var earlier: SegmentHeader?
        for entries in Catalogue.byNumber(plan.segments) {
            switch try await next(after: earlier, among: entries, of: plan.base.chain, store) {
            case .success(let found):
                if try !file.lay(found.segment) { return }
                earlier = found.segment.header
                reached = max(reached ?? found.moment, found.moment)
            case .failure(let refusal):
                // The segment counts as missing. The requested moment may be before it.
                guard let moment, let reached, reached.reaches(moment),
                    entries.allSatisfy({ $0.sequence > plan.base.reach.last })
                else { throw refusal }
                return
            }
        }
    }

    /// A segment, and the moment of its last commit according to its name.
    private struct ShippedSegment {
        let segment: LogSegment
        let moment: Timestamp
    }

    /// Returns the segment that follows `earlier`, among those that were shipped under its number,
    /// or why there is none.
    ///
    /// If several different segments follow, it cannot be decided which relay's segment to use.
    private func next(
        after earlier: SegmentHeader?, among entries: [Catalogue.Segment], of chain: String,
        _ store: String
    ) async throws(DestinationFailure) -> Result<ShippedSegment, BackupRefusal> {
        var found: [ShippedSegment] = []
        var reasons: [String] = []
        for entry in entries {
            switch try await self.segment(entry, of: chain, store: store) {
            case .success(let segment):
                if earlier.map({ segment.follows($0) }) ?? true {
                    found.append(ShippedSegment(segment: segment, moment: entry.moment))
                } else {
                    reasons.append(unlinked(entry))
                }
            case .failure(let refusal): reasons.append(refusal.description)
            }
        }
        if let only = found.first, found.allSatisfy({ $0.segment == only.segment }) {
            return .success(only)
        }
        if let number = entries.first?.sequence, !found.isEmpty {
            reasons = [doubled(number, of: chain)]
        }
        return .failure(
            BackupRefusal(reasons.joined(separator: "; "), of: entries.map(\.name)))
    }

    /// Returns the problem of a segment that belongs to another log than the one before it.
    func unlinked(_ entry: Catalogue.Segment) -> String {
        "\(path(of: entry.name)) does not follow the segment before it"
    }

    /// Returns the problem of a segment number that two relays have used.
    func doubled(_ number: UInt64, of chain: String) -> String {
        "\(place): segment \(number) of the chain \(chain) is there more than once: another relay, "
            + "on a copy of the store, has shipped the same chain"
    }

    /// Returns why nothing was restored, and offers the last moment before `moment` that can be
    /// restored.
    ///
    /// The offer is derived from the names of the objects that were not found damaged.
    private func offering(
        _ refusals: [BackupRefusal], among names: [String], before moment: Timestamp?
    ) async throws(DestinationFailure) -> BackupRefusal {
        let damaged = Set(refusals.flatMap(\.names))
        let rest = Catalogue(names.filter { !damaged.contains($0) })
        let offer = try await furthestCopy(in: rest, before: moment ?? .latest)?.end
        let reasons = refusals.map(\.description).joined(separator: "; ")
        guard let offer else { return BackupRefusal(reasons) }
        return BackupRefusal(
            "\(reasons); it can be restored up to \(offer.iso8601), with --at \(offer.iso8601), "
                + "but what was committed after that is then lost")
    }

    /// Returns the chain that goes furthest if there are several; `nil` if that cannot be
    /// determined.
    private func furthestChain(
        of catalogue: Catalogue
    ) async throws(DestinationFailure) -> String? {
        let chains = Set(catalogue.bases.map(\.chain)).sorted()
        guard chains.count > 1 else { return nil }
        var furthest: (chain: String, span: ChainSpan)?
        for chain in chains {
            guard let found = try await span(of: chain, in: catalogue) else { return nil }
            if furthest.map({ found.isBeyond($0.span) }) ?? true { furthest = (chain, found) }
        }
        return furthest?.chain
    }

    /// Returns the first and the last commit of a chain; `nil` if they cannot be determined.
    private func span(
        of chain: String, in catalogue: Catalogue
    ) async throws(DestinationFailure) -> ChainSpan? {
        let none = Timestamp(seconds: 0)
        guard let base = catalogue.bases.last(where: { $0.chain == chain }),
            let first = catalogue.segments[chain]?.first(where: { $0.moment > none }),
            let last = catalogue.segments(of: base, through: .latest).found
                .last(where: { $0.moment > none })
        else { return nil }
        // A damaged manifest does not say which store it belongs to, but another copy of the chain
        // may be whole.
        let manifest = try await self.manifest(of: base)
        let store = try? manifest.get().store
        guard case .success(let tail) = try await self.segment(last, of: chain, store: store),
            let end = tail.header.marks.last
        else { return nil }
        // A restore need not have the chain's first segment: it may be damaged or already removed.
        let head = try? await self.segment(first, of: chain, store: store)
        let beginning = (try? head?.get())?.header.marks.first
        return ChainSpan(first: beginning ?? end, last: end)
    }

    /// Returns the manifest of a copy, or why it is damaged.
    func manifest(
        of base: Catalogue.Base
    ) async throws(DestinationFailure) -> Result<BaseManifest, BackupRefusal> {
        let name = BackupName.whole(chain: base.chain, base: base.number, base.reach).text
        let bytes = try await destination.get(name, atMost: BaseManifest.maximumBytes)
        guard let bytes, let manifest = BaseManifest(String(decoding: bytes, as: UTF8.self)) else {
            return .failure(damaged(name, bytes))
        }
        return .success(manifest)
    }

    /// Returns why a copy cannot be restored, such as a missing part, judging by its manifest and
    /// the names alone.
    package func lack(
        of base: Catalogue.Base, in catalogue: Catalogue
    ) async throws(DestinationFailure) -> BackupRefusal? {
        switch try await manifest(of: base) {
        case .failure(let refusal): return refusal
        case .success(let manifest):
            let there = Set(catalogue.parts[base.chain]?[base.number] ?? [])
            for number in 1..<(manifest.parts.count + 1) {
                let name = BackupName.part(chain: base.chain, base: base.number, number: number)
                if !there.contains(name.text) { return damaged(name.text, nil) }
            }
            return nil
        }
    }

    private func fetch(
        _ base: Catalogue.Base, _ manifest: BaseManifest, into file: inout FileRebuilding
    ) async throws {
        var offset = 0
        for number in 1..<(manifest.parts.count + 1) {
            let bytes = try await part(number, of: base, manifest).get()
            try file.write(bytes, at: offset)
            offset += bytes.count
        }
    }

    /// Returns a part of a copy, or why it is damaged.
    ///
    /// Parts are numbered from 1.
    func part(
        _ number: Int, of base: Catalogue.Base, _ manifest: BaseManifest
    ) async throws(DestinationFailure) -> Result<[UInt8], BackupRefusal> {
        let part = manifest.parts[number - 1]
        let name = BackupName.part(chain: base.chain, base: base.number, number: number).text
        let bytes = try await destination.get(name, atMost: BaseManifest.maximumPart)
        guard let bytes, bytes.count == part.bytes, RequestSignature.hash(bytes) == part.hash
        else { return .failure(damaged(name, bytes)) }
        return .success(bytes)
    }

    /// Returns a segment, or why it is damaged.
    ///
    /// If `store` is `nil`, the segment may belong to any store.
    func segment(
        _ segment: Catalogue.Segment, of chain: String, store: String?
    ) async throws(DestinationFailure) -> Result<LogSegment, BackupRefusal> {
        let bytes = try await destination.get(segment.name, atMost: maximumShipped)
        guard let bytes, bytes.count > 32,
            bytes.suffix(32).elementsEqual(SHA256.hash(data: bytes.dropLast(32))),
            let found = LogSegment(bytes.dropLast(32)), found.isWhole,
            found.header.chain == chain, found.header.sequence == segment.sequence,
            found.header.store == store ?? found.header.store
        else { return .failure(damaged(segment.name, bytes)) }
        return .success(found)
    }

    private func damaged(_ name: String, _ bytes: [UInt8]?) -> BackupRefusal {
        BackupRefusal(
            bytes == nil
                ? "\(path(of: name)) is missing"
                : "\(path(of: name)) is damaged: its contents do not match its checksum",
            of: [name])
    }

    /// Returns the full path of a name.
    func path(of name: String) -> String {
        place.hasSuffix("/") ? place + name : "\(place)/\(name)"
    }
}

/// The copy and the segments that are needed to restore a moment.
struct RebuildingPlan: Sendable {
    let base: Catalogue.Base
    let segments: [Catalogue.Segment]

    /// Creates a plan.
    ///
    /// - Parameters:
    ///   - catalogue: The catalogue of the destination.
    ///   - base: The copy to restore from.
    ///   - moment: The moment to restore; `nil` means the last one.
    ///   - later: The moment of the first copy of another chain after `moment`.
    ///   - place: The destination's place, for error messages.
    /// - Throws: ``BackupRefusal`` if an object is missing that the moment needs.
    init(
        _ catalogue: Catalogue, of base: Catalogue.Base, asOf moment: Timestamp?,
        before later: Timestamp?, place: String
    ) throws(BackupRefusal) {
        self.base = base
        let (found, missing) = catalogue.segments(of: base, through: moment ?? .latest)
        segments = found
        guard let missing else {
            guard let moment, let later, let last = catalogue.end(of: base)?.moment,
                !last.reaches(moment)
            else { return }
            throw BackupRefusal(
                "\(place): the chain \(base.chain) ends at \(last.iso8601), and the next copy was "
                    + "made at \(later.iso8601): what was committed in between is missing")
        }
        let words = "\(place): segment \(missing) of the chain \(base.chain) is missing"
        guard let end = found.last, end.sequence >= base.reach.last else {
            throw BackupRefusal(
                words + "; without it, its copy \(base.number) is not whole")
        }
        if let moment, end.moment.reaches(moment) { return }
        throw BackupRefusal(words)
    }
}

private extension Timestamp {
    /// Returns whether this moment is at or after `moment`, compared in milliseconds.
    ///
    /// Moments are shown in milliseconds, so that is the precision in which a user requests them.
    func reaches(_ moment: Timestamp) -> Bool { milliseconds >= moment.milliseconds }
}

extension Catalogue {
    /// Returns the moment of the first copy after `moment` in another chain than that of `base`.
    ///
    /// A chain ends where the following commits were not shipped. What was committed between the
    /// end and that copy is unknown.
    func laterCopy(than base: Base, after moment: Timestamp) -> Timestamp? {
        bases.first { $0.chain != base.chain && $0.reach.moment > moment }?.reach.moment
    }

    /// Returns the copies of one chain that a moment can be restored from.
    ///
    /// - Parameters:
    ///   - moment: The moment to restore; `nil` means the last one.
    ///   - chain: The chain to use; `nil` means that of the newest copy.
    ///   - place: The destination's place, for error messages.
    /// - Returns: The copies, newest first.
    /// - Throws: ``BackupRefusal`` if there is none.
    func fitting(
        asOf moment: Timestamp?, of chain: String?, place: String
    ) throws(BackupRefusal) -> [Base] {
        guard let first = bases.first else {
            throw BackupRefusal("there is no whole copy at \(place)")
        }
        let fitting = bases.filter {
            $0.reach.moment <= moment ?? .latest && $0.chain == chain ?? $0.chain
        }
        guard let newest = fitting.last else {
            throw BackupRefusal(
                "\(place) goes back only to \(first.reach.moment.iso8601)")
        }
        return fitting.reversed().filter { $0.chain == newest.chain }
    }
}

/// The reason why nothing can be restored.
package struct BackupRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    package let description: String
    /// The names of the damaged, missing or unusable objects, if there are such.
    let names: [String]

    init(_ description: String, of names: [String] = []) {
        self.description = description
        self.names = names
    }
}
