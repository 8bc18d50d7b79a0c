/// What a reading has found for the results that wait for it, about; a record counts for each.
///
/// A pure value.
struct LoadWeight {
    private struct Sum {
        var records = 0
        var bytes = 0
    }

    private var sums: [UInt32: Sum] = [:]
    /// Those for which something was found since they were taken.
    private var grown: Set<UInt32> = []
    /// The bytes of all of them.
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

    /// Takes the results that may have become too large since the last time: to look at ten
    /// thousand for each few records that are read would take longer than reading them.
    mutating func takeGrown() -> Set<UInt32> {
        let taken = grown
        grown = []
        return taken
    }

    /// The records that were found for a result.
    func records(of group: UInt32) -> Int { sums[group]?.records ?? 0 }

    /// Their bytes.
    func bytes(of group: UInt32) -> Int { sums[group]?.bytes ?? 0 }

    /// Counts a result no more.
    mutating func forget(_ group: UInt32) {
        bytes -= sums.removeValue(forKey: group)?.bytes ?? 0
    }
}
