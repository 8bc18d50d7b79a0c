package import RelayModel

/// How far a restore from a destination reaches.
package enum BackupReach: Sendable, Hashable {
    /// A restore reaches the moment.
    ///
    /// `flaw` says what is wrong with the log before or after it; `nil` if nothing is.
    case restorable(until: Timestamp, flaw: String?)
    /// No copy at the destination can be restored, for this reason.
    case none(reason: String)
}

/// A copy, and how far a restore from it reaches.
struct FurthestCopy: Sendable {
    let base: Catalogue.Base
    let end: Timestamp
    /// The first missing segment; `nil` if the log has no segments after the end.
    let missing: UInt64?
}

extension BackupReading {
    /// Returns how far a restore from the destination reaches, judged by names and manifests.
    ///
    /// It does not read the segments: only ``BackupVerification`` finds a damaged one.
    package func reach() async throws(DestinationFailure) -> BackupReach {
        let catalogue = try await catalogue()
        guard let last = catalogue.bases.last else {
            return .none(reason: "there is no whole copy")
        }
        guard let furthest = try await furthestCopy(in: catalogue, before: .latest) else {
            if let lack = try await lack(of: last, in: catalogue) {
                return .none(reason: lack.description)
            }
            let missing = catalogue.segments(of: last, through: .latest).missing ?? last.reach.last
            return .none(reason: "segment \(missing) of the chain \(last.chain) is missing")
        }
        var flaw: String?
        if let doubled = catalogue.doubled(of: furthest.base) {
            flaw = "segment \(doubled) of the chain \(furthest.base.chain) is there more than once"
        } else if let missing = furthest.missing {
            flaw = "segment \(missing) of the chain \(furthest.base.chain) is missing"
        }
        return .restorable(until: furthest.end, flaw: flaw)
    }

    /// Returns the copy from which a restore reaches furthest, among those whose end is before
    /// `moment`; `nil` if there is none.
    func furthestCopy(
        in catalogue: Catalogue, before moment: Timestamp
    ) async throws(DestinationFailure) -> FurthestCopy? {
        var furthest: FurthestCopy?
        // From the newest copy, so that few manifests of older copies have to be read.
        for base in catalogue.bases.reversed() {
            guard let (end, missing) = catalogue.end(of: base), end < moment,
                furthest.map({ $0.end < end }) ?? true,
                try await lack(of: base, in: catalogue) == nil
            else { continue }
            furthest = FurthestCopy(base: base, end: end, missing: missing)
        }
        return furthest
    }
}

extension Catalogue {
    /// Returns whether the names in a folder are those of a destination, and not of single copies.
    package static func isOfDestination(_ names: [String]) -> Bool {
        names.contains { $0 == BackupName.store || BackupName.isChain($0[...]) }
    }
}
