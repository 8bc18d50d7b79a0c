import ChangeSources
import RelayModel
import Testing

@testable import PostgresFollowing

/// Names that rows come to while others have them still.
@Suite struct RowArrivalsTests {
    private static let table = Relation(
        id: 7, schema: "public", name: "t", identity: UInt8(ascii: "f"),
        columns: ["k", "v"].map { RelationColumn(name: $0, type: 25, isIdentity: true) })

    private static func row(_ key: FieldValue, _ text: String) -> RecordImage {
        RecordImage(["k": key, "v": .string(text)])
    }

    /// What is said of a row that goes elsewhere once another one has come to its name.
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

    /// All kinds of values that name records, as long as names may be.
    @Test(arguments: [
        FieldValue.integer(2), .string(String(repeating: "k", count: 1024)),
        .bytes([UInt8](repeating: 7, count: 768)),
    ])
    func `what has come is told with the key that names it`(key: FieldValue) {
        #expect(Self.taker(of: key) == ["k": key, "v": .string("a")])
    }

    @Test func `what is longer than a name is left out`() {
        let key = FieldValue.string(String(repeating: "k", count: 1025))
        #expect(Self.taker(of: key) == ["v": .string("a")])
    }
}
