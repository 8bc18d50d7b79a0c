import RelayModel
import Storage

/// The records of one type that are members of results, with the numbers of these results.
///
/// Records are found by the IDs that they contain. Separate keys for a hundred thousand records
/// would take many megabytes. This is a pure value.
struct MemberRecords {
    /// A record as a key, which compares by its ID alone.
    private struct Key: Hashable {
        let record: LiveRecord

        static func == (one: Key, other: Key) -> Bool {
            one.record === other.record || one.record.id == other.record.id
        }

        func hash(into hasher: inout Hasher) { hasher.combine(record.id) }
    }

    /// The numbers of the results of each record, ascending.
    private var groups: [Key: [UInt32]] = [:]

    var count: Int { groups.count }

    mutating func reserveCapacity(_ count: Int) { groups.reserveCapacity(count) }

    /// Returns the kept record with the same ID as `named`, if it is a member.
    subscript(named: LiveRecord) -> LiveContainer.Member? {
        guard let index = groups.index(forKey: Key(record: named)) else { return nil }
        return LiveContainer.Member(
            record: groups[index].key.record, groups: groups[index].value)
    }

    /// Makes a record a member of one more result; a record that is kept already is not replaced.
    mutating func add(_ group: UInt32, to record: LiveRecord) {
        groups[Key(record: record), default: []].insertAscending(group)
    }

    /// Removes a record from one result.
    mutating func remove(_ group: UInt32, from record: LiveRecord) {
        guard let index = groups.index(forKey: Key(record: record)) else { return }
        groups.values[index].removeAscending(group)
        if groups[index].value.isEmpty { groups.remove(at: index) }
    }

    /// Replaces a record and its results; a record that is a member of none is forgotten.
    mutating func replace(_ named: LiveRecord, by later: LiveRecord?, in numbers: [UInt32]) {
        // The key is removed too, because a dictionary would keep the old record as its key.
        if let index = groups.index(forKey: Key(record: named)) { groups.remove(at: index) }
        guard let later, !numbers.isEmpty else { return }
        groups[Key(record: later)] = numbers
    }
}

extension LiveRecord {
    /// Creates a record with only the ID of the changed record, to look it up.
    convenience init(namedBy change: RecordChange) {
        let stamp = RecordStamp(at: Timestamp(milliseconds: 0), userID: nil, deviceID: nil)
        self.init(
            ShadowRecord(
                recordID: change.recordID, recordType: change.recordType, fields: [:],
                created: stamp, modified: stamp, source: .cloudKit, position: .start),
            readers: nil)
    }
}
