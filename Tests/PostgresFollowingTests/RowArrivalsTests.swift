import ChangeSources
import RelayModel
import Testing

@testable import PostgresFollowing

/// Rows that take over a key while another row still has it.
@Suite struct RowArrivalsTests {
    private static let table = Relation(
        id: 7, schema: "public", name: "t", identity: UInt8(ascii: "f"),
        columns: ["k", "v"].map { RelationColumn(name: $0, type: 25, isIdentity: true) })

    private static func row(_ key: FieldValue, _ text: String) -> RecordImage {
        RecordImage(["k": key, "v": .string(text)])
    }

    /// Returns the note on a row that leaves a key after another row has taken it.
    private static func taker(of key: FieldValue) -> RecordFields? {
        var arrivals = RowArrivals()
        var comes = FollowedRow(
            .update, schema: "public", table: "t", key: ["k"], position: "p/1")
        (comes.before, comes.after) = (row(.string("first"), "a"), row(key, "a"))
        arrivals.note(&comes, of: table)
        var goes = FollowedRow(
            .update, schema: "public", table: "t", key: ["k"], position: "p/2")
        (goes.before, goes.after) = (row(key, "b"), row(.string("last"), "b"))
        arrivals.note(&goes, of: table)
        return goes.formerTakenBy
    }

    /// All kinds of values that may be keys, at the greatest length of a record name.
    @Test(arguments: [
        FieldValue.integer(2), .string(String(repeating: "k", count: 1024)),
        .bytes([UInt8](repeating: 7, count: 768)),
    ])
    func `the row that took a key is reported with that key`(key: FieldValue) {
        #expect(Self.taker(of: key) == ["k": key, "v": .string("a")])
    }

    @Test func `a key longer than a record name is left out`() {
        let key = FieldValue.string(String(repeating: "k", count: 1025))
        #expect(Self.taker(of: key) == ["v": .string("a")])
    }
}
