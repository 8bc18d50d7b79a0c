import RelayModel
import Storage

/// What entries that were worked did to subscriptions, until it is handed over.
struct PendingFirings {
    /// The number at which they are handed over, whether or not the entries owe deliveries.
    private static let most = 65_536

    private var notes: [FiringNote] = []
    private var count = 0

    /// Whether there are so many that they should not wait.
    var isMany: Bool { count >= Self.most }

    mutating func append(_ note: FiringNote) {
        notes.append(note)
        count += note.count
    }

    /// Takes all of them.
    mutating func take() -> [FiringNote] {
        defer {
            notes.removeAll(keepingCapacity: true)
            count = 0
        }
        return notes
    }
}

extension Follower {
    /// Notes what an entry did to subscriptions, once all that it owes is pending or handed over:
    /// before that a batch may not tell of it.
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
