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
    /// What nobody has more than.
    private var most = 0
    /// The results of each reader, the largest last once they are in order.
    private var lists: [LiveReader: [UInt32]] = [:]
    private var inOrder: Set<LiveReader> = []

    /// Counts a result, once.
    mutating func add(_ group: UInt32, _ bytes: Int, for readers: Set<LiveReader>) {
        guard !readers.isEmpty, bytes > 0, results[group] == nil else { return }
        let share = max(1, bytes / readers.count)
        results[group] = Result(readers: readers, share: share)
        for reader in readers {
            let sum = sums[reader, default: 0] + share
            sums[reader] = sum
            most = max(most, sum)
            lists[reader, default: []].append(group)
            inOrder.remove(reader)
        }
    }

    /// Counts a result no more.
    ///
    /// - Returns: whether it was counted.
    @discardableResult
    mutating func remove(_ group: UInt32) -> Bool {
        guard let result = results.removeValue(forKey: group) else { return false }
        for reader in result.readers { sums[reader, default: 0] -= result.share }
        return true
    }

    /// Takes out the largest result of the reader who has most.
    ///
    /// - Parameters:
    ///   - others: those in whose place that one is to go; it does not if each of them has half as
    ///     much or more.
    ///   - spared: a result that is not taken.
    /// - Returns: Its number; `nil` if nobody has so much.
    mutating func takeLargest(
        beside others: Set<LiveReader> = [], sparing spared: UInt32? = nil
    ) -> UInt32? {
        let own = others.map { sums[$0, default: 0] }.min() ?? 0
        // To look at all readers for each of thousands of results would hold up everybody.
        guard most > 2 * own, let (reader, sum) = sums.max(by: { $0.value < $1.value }) else {
            return nil
        }
        most = sum
        guard sum > 2 * own else { return nil }
        if inOrder.insert(reader).inserted { sort(reader) }
        var taken: UInt32?
        var isSpared = false
        while taken == nil, let group = lists[reader]?.popLast() {
            if group == spared {
                isSpared = true
            } else if remove(group) {
                // One that several see may have gone for another one's sake.
                taken = group
            }
        }
        if isSpared, let spared { lists[reader]?.append(spared) }
        return taken
    }

    private mutating func sort(_ reader: LiveReader) {
        let shares = results
        lists[reader]?.sort { left, right in
            (shares[left]?.share ?? 0, left) < (shares[right]?.share ?? 0, right)
        }
    }
}
