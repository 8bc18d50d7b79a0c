package import RelayModel

/// Conditions that are judged on the record before an update.
///
/// They have an index of their own, because a match in it says nothing about the record after the
/// update.
package struct EarlierImages: Sendable {
    let index: SubscriptionIndex

    /// Creates an empty index; the secret seed protects its hashes against collisions made on
    /// purpose.
    package init(indexSeed: UInt64) {
        index = SubscriptionIndex(seed: indexSeed)
    }

    /// Creates the conditions from an index that was read from a snapshot.
    init(_ index: SubscriptionIndex) {
        self.index = index
    }

    /// Files a condition.
    package func insert(_ indexed: IndexedSubscription) {
        var earlier = indexed
        // The before image is judged like that of a deletion, by what was known before the change.
        earlier.firesOn = .delete
        index.insert(earlier)
    }

    /// Removes a condition.
    package func remove(serial: UInt64) {
        index.remove(serial: serial)
    }

    /// Returns the serials of the conditions that held on the before image of `change`; empty if
    /// the change has no before image.
    ///
    /// Conditions for which `mayJudge` does not hold are not evaluated once that takes long.
    ///
    /// - Throws: `DearChange` if that takes more than `mostSteps`.
    package func serials(
        before change: RecordChange, now: Timestamp,
        mostSteps: Int = Limits.maximumStepsPerChange, among mayJudge: ((UInt64) -> Bool)? = nil
    ) throws(DearChange) -> Set<UInt64> {
        guard change.before != nil else { return [] }
        var earlier = change
        earlier.operation = .delete
        var serials: [UInt64] = []
        let dear = index.matches(
            for: earlier, now: now, mostSteps: mostSteps, into: &serials, among: mayJudge)
        if let dear { throw dear }
        return Set(serials)
    }
}
