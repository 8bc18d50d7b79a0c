import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Live

/// The records that are members of results, found by their IDs.
@Suite struct MemberRecordsTests {
    private static func record(_ name: String, at position: UInt64 = 1) -> LiveRecord {
        let stamp = RecordStamp(at: Fixtures.moment, userID: nil, deviceID: nil)
        return LiveRecord(
            ShadowRecord(
                recordID: RecordID(recordName: Fixtures.identifier(name)),
                recordType: Fixtures.identifier("Artwork"), fields: [:], created: stamp,
                modified: stamp, source: .cloudKit, position: LogPosition(position)),
            readers: nil)
    }

    @Test func `a record is found by its name, as it is kept`() throws {
        var records = MemberRecords()
        let first = Self.record("r", at: 1)
        records.add(7, to: first)
        // The record that is already kept stays, also if another result adds it.
        records.add(3, to: Self.record("r", at: 2))
        let found = try #require(records[Self.record("r", at: 9)])
        #expect(found.record === first && found.groups == [3, 7])
        #expect(records[Self.record("other")] == nil && records.count == 1)
        var change = RecordChange(
            .update, of: Fixtures.identifier("Artwork"), first.id)
        #expect(records[LiveRecord(namedBy: change)]?.record === first)
        change = RecordChange(.update, of: Fixtures.identifier("Artwork"), Self.record("x").id)
        #expect(records[LiveRecord(namedBy: change)] == nil)
    }

    @Test func `the current record replaces its former version`() {
        var records = MemberRecords()
        records.add(7, to: Self.record("r", at: 1))
        let later = Self.record("r", at: 2)
        records.replace(Self.record("r"), by: later, in: [1, 7, 9])
        #expect(records[later]?.record === later && records[later]?.groups == [1, 7, 9])
        // A record that is a member of no result is forgotten, and so is one that was deleted.
        records.replace(later, by: later, in: [])
        #expect(records[later] == nil && records.count == 0)
        records.replace(later, by: later, in: [4])
        records.replace(later, by: nil, in: [4])
        #expect(records[later] == nil && records.count == 0)
    }

    @Test func `a record is forgotten with the last result that contains it`() {
        var records = MemberRecords()
        let record = Self.record("r")
        for group in [5, 2, 9] as [UInt32] { records.add(group, to: record) }
        records.remove(5, from: record)
        records.remove(5, from: record)
        #expect(records[record]?.groups == [2, 9])
        records.remove(2, from: record)
        records.remove(9, from: record)
        records.remove(9, from: record)
        #expect(records[record] == nil && records.count == 0)
    }

    /// Names in two spellings of one letter are two records.
    @Test func `names are compared by bytes`() {
        var records = MemberRecords()
        records.add(1, to: Self.record("zo\u{EB}"))
        records.add(2, to: Self.record("zoe\u{308}"))
        #expect(records.count == 2)
        #expect(records[Self.record("zo\u{EB}")]?.groups == [1])
    }
}
