package import RelayModel

/// Conditions that are judged on the record before an update.
///
/// They are filed in an index of their own, because what they find says nothing of the record
/// after it.
package struct EarlierImages: Sendable {
    let index: SubscriptionIndex

    /// Creates an index without conditions; the seed keeps its hashes secret.
    package init(indexSeed: UInt64) {
        index = SubscriptionIndex(seed: indexSeed)
    }

    /// Takes an index over from a snapshot.
    init(_ index: SubscriptionIndex) {
        self.index = index
    }

    /// Files a condition.
    package func insert(_ indexed: IndexedSubscription) {
        var earlier = indexed
        // The before image is judged as that of a deletion is: by what was known before.
        earlier.firesOn = .delete
        index.insert(earlier)
    }

    /// Takes a condition out.
    package func remove(serial: UInt64) {
        index.remove(serial: serial)
    }

    /// The serials of the conditions that held on the before image of `change`; none if it shows
    /// none.
    ///
    /// - Throws: `DearChange` if that takes more than `mostSteps`.
    package func serials(
        before change: RecordChange, now: Timestamp,
        mostSteps: Int = Limits.maximumStepsPerChange
    ) throws(DearChange) -> Set<UInt64> {
        guard change.before != nil else { return [] }
        var earlier = change
        earlier.operation = .delete
        var serials: [UInt64] = []
        let dear = index.matches(for: earlier, now: now, mostSteps: mostSteps, into: &serials)
        if let dear { throw dear }
        return Set(serials)
    }
}
