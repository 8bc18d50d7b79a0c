import RelayModel
import StorageSQLite

/// From which commit to which a chain goes, as far as it is there.
struct ChainSpan: Sendable, Hashable {
    let first: LogMark
    let last: LogMark

    /// Whether it goes further than `other`.
    ///
    /// Moments alone do not tell it: a clock that was ahead leaves later ones in a chain than what
    /// comes after it has. The commits do, which the store counts. A store that came back from a
    /// server, or of which a former state was put back, counts them anew: then it is the moments.
    func isBeyond(_ other: ChainSpan) -> Bool {
        if follows(other) { return true }
        if other.follows(self) { return false }
        return last.moment > other.last.moment
    }

    /// Whether all of it came after all of `other`, by the store's commits and by its log.
    private func follows(_ other: ChainSpan) -> Bool {
        first.commits > other.last.commits && first.head >= other.last.head
    }
}
