import RelayModel
import StorageSQLite

/// Reads everything that a restore from a destination would need, and lists what is damaged or
/// missing.
///
/// Only one part or segment is in memory at a time, and nothing is written.
package struct BackupVerification: Sendable {
    /// The number of whole copies.
    package private(set) var copies = 0
    package private(set) var segments = 0
    /// The number of bytes that were read.
    package private(set) var bytes = 0
    /// The damaged or missing objects, one sentence each.
    package private(set) var problems: [String] = []

    private let reading: BackupReading

    /// Reads and verifies the destination.
    ///
    /// - Throws: ``DestinationFailure`` if the destination does not answer.
    package init(of destination: any BackupDestination) async throws(DestinationFailure) {
        reading = BackupReading(destination)
        let catalogue = try await reading.catalogue()
        if catalogue.bases.isEmpty { problems = ["there is no whole copy at \(reading.place)"] }
        var stores: [String: String] = [:]
        for base in catalogue.bases {
            if let store = try await read(base) { stores[base.chain] = store }
            judge(base, in: catalogue)
        }
        for (chain, store) in stores.sorted(by: { $0.key < $1.key }) {
            try await read(catalogue.needed(of: chain), of: chain, store)
        }
    }

    /// Reads the parts of a copy; returns the store that it belongs to, if the manifest can be
    /// read.
    private mutating func read(
        _ base: Catalogue.Base
    ) async throws(DestinationFailure) -> String? {
        copies += 1
        let manifest: BaseManifest
        switch try await reading.manifest(of: base) {
        case .success(let found): manifest = found
        case .failure(let refusal):
            problems.append(refusal.description)
            return nil
        }
        for number in 1..<(manifest.parts.count + 1) {
            switch try await reading.part(number, of: base, manifest) {
            case .success(let part): bytes += part.count
            case .failure(let refusal): problems.append(refusal.description)
            }
        }
        return manifest.store
    }

    private mutating func judge(_ base: Catalogue.Base, in catalogue: Catalogue) {
        guard let end = catalogue.end(of: base) else {
            problems.append(
                "the copy \(base.number) of the chain \(base.chain) cannot be restored: a segment "
                    + "from \(base.reach.since) to \(base.reach.last) is missing")
            return
        }
        guard let missing = end.missing else { return }
        problems.append(
            "segment \(missing) of the chain \(base.chain) is missing: its copy \(base.number) can "
                + "be restored only up to \(end.moment.iso8601)")
    }

    private mutating func read(
        _ entries: [Catalogue.Segment], of chain: String, _ store: String
    ) async throws(DestinationFailure) {
        var earlier: SegmentHeader?
        var isDoubled = false
        for group in Catalogue.byNumber(entries) {
            var found: [SegmentHeader] = []
            for entry in group {
                segments += 1
                switch try await reading.segment(entry, of: chain, store: store) {
                case .success(let segment):
                    bytes += segment.bytes.count
                    found.append(segment.header)
                    if let earlier, segment.header.sequence == earlier.sequence + 1,
                        !segment.follows(earlier)
                    {
                        problems.append(reading.unlinked(entry))
                    }
                case .failure(let refusal): problems.append(refusal.description)
                }
            }
            // While both relays ship, every further number is doubled too, so only the first one is
            // reported.
            if !isDoubled, found.count > 1, let number = group.first?.sequence {
                problems.append(reading.doubled(number, of: chain))
                isDoubled = true
            }
            earlier = found.count == 1 ? found.first : nil
        }
    }
}
