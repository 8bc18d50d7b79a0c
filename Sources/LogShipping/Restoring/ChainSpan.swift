import RelayModel
import StorageSQLite

/// The first and the last available commit of a chain.
struct ChainSpan: Sendable, Hashable {
    let first: LogMark
    let last: LogMark

    /// Returns whether this chain goes further than `other`.
    ///
    /// Moments alone do not decide this: while a clock was ahead, a chain may have got later
    /// moments than the chain after it. So the store's commit counts are compared first. A store
    /// that was moved back from a server, or restored to an earlier state, counts its commits anew;
    /// in that case the moments decide.
    func isBeyond(_ other: ChainSpan) -> Bool {
        if follows(other) { return true }
        if other.follows(self) { return false }
        return last.moment > other.last.moment
    }

    /// Returns whether all of this chain came after all of `other`, by commit count and log
    /// position.
    private func follows(_ other: ChainSpan) -> Bool {
        first.commits > other.last.commits && first.head >= other.last.head
    }
}
