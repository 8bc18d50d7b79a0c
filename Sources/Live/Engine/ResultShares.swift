/// What results take in memory, by those who see them: where there is no room for all, the largest
/// go of whoever has most.
///
/// A result that several see is a part for each of them, so that what many see is nobody's fault.
/// A pure value.
struct ResultShares {
    /// Readers of one result that are told apart.
    static let mostReaders = 16

    private struct Result {
        let readers: Set<LiveReader>
        /// What each of them has of it.
        let share: Int
    }

    private var results: [UInt32: Result] = [:]
    private var sums: [LiveReader: Int] = [:]
    /// The results of each reader, the largest last once they are in order.
    private var lists: [LiveReader: [UInt32]] = [:]
    private var inOrder: Set<LiveReader> = []

    /// Counts a result that nobody has counted.
    mutating func add(_ group: UInt32, _ bytes: Int, for readers: Set<LiveReader>) {
        guard !readers.isEmpty, bytes > 0 else { return }
        let share = max(1, bytes / readers.count)
        results[group] = Result(readers: readers, share: share)
        for reader in readers {
            sums[reader, default: 0] += share
            lists[reader, default: []].append(group)
            inOrder.remove(reader)
        }
    }

    /// Takes out the largest result of the reader who has most.
    ///
    /// - Parameter others: those in whose place that one is to go; it does not if one of them has
    ///   half as much or more.
    /// - Returns: Its number; `nil` if nobody has so much.
    mutating func takeLargest(beside others: Set<LiveReader> = []) -> UInt32? {
        let own = others.reduce(0) { max($0, sums[$1, default: 0]) }
        guard let most = sums.max(by: { $0.value < $1.value }), most.value > 2 * own else {
            return nil
        }
        if inOrder.insert(most.key).inserted { sort(most.key) }
        while let group = lists[most.key]?.popLast() {
            // One that several see may have gone for another one's sake.
            guard let result = results.removeValue(forKey: group) else { continue }
            for reader in result.readers { sums[reader, default: 0] -= result.share }
            return group
        }
        return nil
    }

    private mutating func sort(_ reader: LiveReader) {
        let shares = results
        lists[reader]?.sort { left, right in
            (shares[left]?.share ?? 0, left) < (shares[right]?.share ?? 0, right)
        }
    }
}
