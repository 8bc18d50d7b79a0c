import RelayModel
import RelayTestKit
import Storage
import Testing

/// The computed size of a record is never more than the size of what a client wrote.
@Suite struct RecordSizeTests {
    private static func record(_ fields: RecordFields) -> ShadowRecord {
        let stamp = RecordStamp(at: Sample.moment(0), userID: nil, deviceID: nil)
        return ShadowRecord(
            recordID: RecordID(recordName: Sample.identifier("n")),
            recordType: Sample.identifier("T"), fields: fields, created: stamp, modified: stamp,
            source: .cloudKit, position: LogPosition(1))
    }

    @Test(arguments: [
        FieldValue.integer(0), .integer(9), .integer(-7), .integer(1023), .integer(.max),
        .integer(.min), .double(3), .double(0.5), .bool(true), .string("x"), .bytes([1]), .null,
    ])
    func `a list whose JSON is within the limit is within the limit`(value: FieldValue) {
        // The value as a client writes it, with a comma.
        let bytes = value.notation.text.utf8.count + 1
        let values = Array(repeating: value, count: Limits.maximumRecordBytes / bytes - 16)
        let grown = Self.record(["list": .list(values)])
        #expect(!grown.hasOutgrown(Self.record(["list": .list([value])])))
    }

    @Test func `a record beyond the limit is refused unless it was beyond it before`() {
        let long = String(repeating: "x", count: Limits.maximumRecordBytes)
        let grown = Self.record(["a": .string(long), "b": .integer(1)])
        #expect(grown.hasOutgrown(Self.record([:])))
        #expect(!grown.hasOutgrown(grown))
    }
}
