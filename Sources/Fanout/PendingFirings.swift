import RelayModel
import Storage

/// The effects of worked entries on subscriptions, until they are handed over.
struct PendingFirings {
    /// The number of firings at which they are handed over, even if the entries owe no deliveries.
    private static let most = 65_536

    private var notes: [FiringNote] = []
    private var count = 0

    /// Whether there are so many that they should not wait.
    var isMany: Bool { count >= Self.most }

    mutating func append(_ note: FiringNote) {
        notes.append(note)
        count += note.count
    }

    /// Takes all notes.
    mutating func take() -> [FiringNote] {
        defer {
            notes.removeAll(keepingCapacity: true)
            count = 0
        }
        return notes
    }
}

extension Follower {
    /// Notes the effects of an entry on subscriptions.
    ///
    /// Call it once everything that the entry owes is pending or handed over, because no batch may
    /// report the effects earlier.
    mutating func noteFirings(
        _ fired: [UInt64], _ unreached: [UnreachedFiring], _ entry: FollowedEntry
    ) {
        guard !fired.isEmpty || !state.erring.isEmpty else { return }
        pendingFirings.append(
            FiringNote(
                position: entry.position, at: entry.appendedAt, fired: fired,
                unreached: unreached, errors: state.erring))
    }
}
