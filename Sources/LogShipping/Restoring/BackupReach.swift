package import RelayModel

/// How far a restore from a destination reaches.
package enum BackupReach: Sendable, Hashable {
    /// It reaches the moment. `flaw` says what is wrong with the log after it, or around it.
    case restorable(until: Timestamp, flaw: String?)
    /// No copy at the destination can be restored, for the reason.
    case none(reason: String)
}

/// A copy, and how far it can be taken.
struct FurthestCopy: Sendable {
    let base: Catalogue.Base
    let end: Timestamp
    /// The segment whose absence ends it; `nil` if nothing is there after the end.
    let missing: UInt64?
}

extension BackupReading {
    /// How far a restore from the destination reaches, as far as names and manifests tell.
    ///
    /// It reads the manifests of the copies alone: a segment that is damaged is found only by
    /// ``BackupVerification``.
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

    /// The copy that can be taken furthest, if that is before `moment`.
    func furthestCopy(
        in catalogue: Catalogue, before moment: Timestamp
    ) async throws(DestinationFailure) -> FurthestCopy? {
        var furthest: FurthestCopy?
        // The newest first: of the others few manifests are read then.
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
    /// Whether the names in a folder are those of a destination, and not of single copies.
    package static func isOfDestination(_ names: [String]) -> Bool {
        names.contains { $0 == BackupName.store || BackupName.isChain($0[...]) }
    }
}
