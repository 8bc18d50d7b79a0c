import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Live

/// The records that a reading has found for the results that wait for it.
@Suite struct LoadWeightTests {
    private static let record: LiveRecord = {
        let stamp = RecordStamp(at: Fixtures.moment, userID: nil, deviceID: nil)
        return LiveRecord(
            ShadowRecord(
                recordID: RecordID(recordName: Fixtures.identifier("r")),
                recordType: Fixtures.identifier("Artwork"), fields: [:], created: stamp,
                modified: stamp, source: .cloudKit, position: LogPosition(1)),
            readers: nil)
    }()

    @Test func `only results that have grown since the last look are returned`() {
        var weight = LoadWeight()
        weight.add(Self.record, to: [1, 2])
        let first = weight.takeGrown()
        let none = weight.takeGrown()
        weight.add(Self.record, to: [2, 3])
        let second = weight.takeGrown()
        #expect(first == [1, 2])
        #expect(none == [])
        #expect(second == [2, 3])
        let counts = [weight.records(of: 1), weight.records(of: 2), weight.records(of: 3)]
        #expect(counts == [1, 2, 1])
        #expect(weight.bytes == 4 * Self.record.bytes)
    }

    @Test func `a forgotten result counts no more`() {
        var weight = LoadWeight()
        weight.add(Self.record, to: [1, 2])
        weight.forget(1)
        #expect(weight.bytes == weight.bytes(of: 2))
        #expect(weight.groups == [2])
    }
}
