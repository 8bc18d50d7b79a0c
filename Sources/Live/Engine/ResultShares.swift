/// The memory of results by their readers; if there is no room for all, the largest results go of
/// the reader who has the most.
///
/// A result with several readers counts as a share for each of them, so a popular result is held
/// against nobody. This is a pure value.
struct ResultShares {
    /// The maximum number of readers of one result that are counted separately.
    static let mostReaders = 16

    private struct Result {
        let readers: Set<LiveReader>
        /// The bytes that each reader is charged for.
        let share: Int
    }

    private var results: [UInt32: Result] = [:]
    private var sums: [LiveReader: Int] = [:]
    /// An upper bound for what any reader has.
    private var most = 0
    /// The results of each reader; the largest last, once sorted.
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

    /// Stops counting a result.
    ///
    /// - Returns: Whether it was counted.
    @discardableResult
    mutating func remove(_ group: UInt32) -> Bool {
        guard let result = results.removeValue(forKey: group) else { return false }
        for reader in result.readers { sums[reader, default: 0] -= result.share }
        return true
    }

    /// Removes and returns the largest result of the reader who has the most.
    ///
    /// - Parameters:
    ///   - others: The readers who need the room; nothing is removed if each of them has at least
    ///     half as much.
    ///   - spared: A result that is not removed.
    /// - Returns: The number of the result; `nil` if no reader has so much.
    mutating func takeLargest(
        beside others: Set<LiveReader> = [], sparing spared: UInt32? = nil
    ) -> UInt32? {
        let own = others.map { sums[$0, default: 0] }.min() ?? 0
        // Looking at all readers for each of thousands of results would hold up all clients.
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
                // A result with several readers may have been removed for another reader already.
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
