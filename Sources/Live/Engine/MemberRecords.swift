import RelayModel
import Storage

/// The records of one type that are members of results, with the numbers of these.
///
/// They are found by their IDs, which stand in the records: to keep those of a hundred thousand
/// once more takes many megabytes. A pure value.
struct MemberRecords {
    /// A record, as it is looked for: by its ID, whatever else it says.
    private struct Key: Hashable {
        let record: LiveRecord

        static func == (one: Key, other: Key) -> Bool {
            one.record === other.record || one.record.id == other.record.id
        }

        func hash(into hasher: inout Hasher) { hasher.combine(record.id) }
    }

    /// The numbers ascend.
    private var groups: [Key: [UInt32]] = [:]

    var count: Int { groups.count }

    mutating func reserveCapacity(_ count: Int) { groups.reserveCapacity(count) }

    /// The record as it is kept that is `named` as this one is, if it is a member.
    subscript(named: LiveRecord) -> LiveContainer.Member? {
        guard let index = groups.index(forKey: Key(record: named)) else { return nil }
        return LiveContainer.Member(
            record: groups[index].key.record, groups: groups[index].value)
    }

    /// Makes a record a member of one more result; the record stays as it is kept already.
    mutating func add(_ group: UInt32, to record: LiveRecord) {
        groups[Key(record: record), default: []].insertAscending(group)
    }

    /// Ends that.
    mutating func remove(_ group: UInt32, from record: LiveRecord) {
        guard let index = groups.index(forKey: Key(record: record)) else { return }
        groups.values[index].removeAscending(group)
        if groups[index].value.isEmpty { groups.remove(at: index) }
    }

    /// Has a record as it is now, with its results, take the place of what it was; one that is a
    /// member of none is forgotten.
    mutating func replace(_ named: LiveRecord, by later: LiveRecord?, in numbers: [UInt32]) {
        // With its key: a dictionary keeps the one that it has.
        if let index = groups.index(forKey: Key(record: named)) { groups.remove(at: index) }
        guard let later, !numbers.isEmpty else { return }
        groups[Key(record: later)] = numbers
    }
}

extension LiveRecord {
    /// Nothing but the name of the record that a change is of, to look for it.
    convenience init(namedBy change: RecordChange) {
        let stamp = RecordStamp(at: Timestamp(milliseconds: 0), userID: nil, deviceID: nil)
        self.init(
            ShadowRecord(
                recordID: change.recordID, recordType: change.recordType, fields: [:],
                created: stamp, modified: stamp, source: .cloudKit, position: .start),
            readers: nil)
    }
}
