import RelayModel
import RelayTestKit
import Storage
import Testing

/// Which record is meant if a record of a database and one of a client have the same name.
@Suite struct MeantRecordTests {
    private static let alice: UserID = Sample.identifier("alice")
    private static let bob: UserID = Sample.identifier("bob")

    private static func record(
        _ source: SourceName, of user: UserID?, at position: UInt64
    ) -> ShadowRecord {
        let stamp = RecordStamp(at: Sample.moment(0), userID: user, deviceID: nil)
        return ShadowRecord(
            recordID: RecordID(recordName: Sample.identifier("n")),
            recordType: Sample.identifier("T"), fields: [:], created: stamp, modified: stamp,
            source: source, position: LogPosition(position))
    }

    @Test func `one's own record comes first, then a database's, then the latest`() {
        let posted = Self.record(Sample.source, of: nil, at: 1)
        let made = Self.record(.cloudKit, of: Self.alice, at: 2)
        let cases: [(user: UserID?, database: DatabaseScope, isPosted: Bool)] = [
            (Self.bob, .public, true), (nil, .public, true), (Self.alice, .public, false),
            (Self.bob, .private, false),
        ]
        for (user, database, isPosted) in cases {
            #expect(posted.isMeant(over: made, by: user, in: database) == isPosted)
            #expect(made.isMeant(over: posted, by: user, in: database) != isPosted)
        }
        let later = Self.record(Sample.source, of: Self.bob, at: 3)
        #expect(later.isMeant(over: posted, by: Self.bob, in: .public))
        #expect(!posted.isMeant(over: later, by: Self.bob, in: .public))
    }
}
