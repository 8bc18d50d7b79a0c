/// Estimates what a reading has found for the waiting results; a record counts for each of them.
///
/// This is a pure value.
struct LoadWeight {
    private struct Sum {
        var records = 0
        var bytes = 0
    }

    private var sums: [UInt32: Sum] = [:]
    /// The results for which something was found since the last ``takeGrown()``.
    private var grown: Set<UInt32> = []
    /// The bytes of all results.
    private(set) var bytes = 0

    /// The results for which something was found.
    var groups: [UInt32] { Array(sums.keys) }

    /// Counts a record for each of the results.
    mutating func add(_ record: LiveRecord, to groups: [UInt32]) {
        for group in groups {
            sums[group, default: Sum()].records += 1
            sums[group, default: Sum()].bytes += record.bytes
            grown.insert(group)
        }
        bytes += record.bytes * groups.count
    }

    /// Returns the results that have grown since the last call, and so may have become too large.
    ///
    /// Looking at ten thousand results for each few records would take longer than reading these.
    mutating func takeGrown() -> Set<UInt32> {
        let taken = grown
        grown = []
        return taken
    }

    /// Returns the number of records found for a result.
    func records(of group: UInt32) -> Int { sums[group]?.records ?? 0 }

    /// Returns the bytes of the records found for a result.
    func bytes(of group: UInt32) -> Int { sums[group]?.bytes ?? 0 }

    /// Stops counting a result.
    mutating func forget(_ group: UInt32) {
        bytes -= sums.removeValue(forKey: group)?.bytes ?? 0
    }
}
