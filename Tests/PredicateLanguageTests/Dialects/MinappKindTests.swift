import PredicateLanguage
import RegularExpressions
import RelayModel
import Testing

/// Minapp's conditions on fields of other kinds; the conditions themselves have only texts,
/// numbers and booleans.
@Suite struct MinappKindTests {
    private static let uuid = "8f3c9a10-0000-4000-8000-0123456789ab"
    private static let objectID = "64b7f1c2a1b2c3d4e5f60718"

    private static let schema = RecordSchema([
        "owner": RecordSchema.Field(.uuid), "owners": RecordSchema.Field(.list(.uuid)),
        "room": RecordSchema.Field(.objectID), "made": RecordSchema.Field(.string),
        "blob": RecordSchema.Field(.bytes),
    ])

    private static func record() throws -> RecordFields {
        let uuid = FieldValue.uuid(try #require(UUIDBytes(Self.uuid)))
        let room = FieldValue.objectID(try #require(Hexadecimal.decode(Self.objectID)))
        return [
            "owner": uuid, "owners": .list([.null, uuid]), "room": room,
            "made": .string("2018-09-01T18:31:02.631000+08:00"),
        ]
    }

    @Test(arguments: [
        (#"{"owner": {"$eq": "\#(uuid)"}}"#, true), (#"{"owner": {"$ne": "\#(uuid)"}}"#, false),
        (#"{"owner": {"$eq": "\#(objectID)"}}"#, false),
        (#"{"owners": {"$eq": "\#(uuid)"}}"#, true), (#"{"owners": {"$eq": "x"}}"#, false),
        (#"{"room": {"$eq": "\#(objectID)"}}"#, true),
        (#"{"room": {"$ne": "\#(objectID)"}}"#, false), (#"{"room": {"$eq": "x"}}"#, false),
        (#"{"made": {"$eq": "2018-09-01T10:31:02.631Z"}}"#, true),
        (#"{"made": {"$gt": "2018-09-01T10:31:02.630Z"}}"#, true),
        (#"{"made": {"$lt": "2018-09-01T10:31:02.630Z"}}"#, false),
    ])
    func `a text matches UUIDs, object IDs and dates`(
        json: String, holds: Bool
    ) throws {
        let predicate = try RecordPredicate(where: JSONValue(parsing: Array(json.utf8)))
        #expect(predicate.evaluate(on: try Self.record()) == (holds ? .true : .false))
        try predicate.check(schema: Self.schema)
        #expect(predicate.ownWarnings(by: Self.schema) == [])
    }

    @Test(arguments: [
        ("2026-01-31", "write a date as ISO 8601 text with an offset: 2026-01-31T12:00:00Z"),
        (
            "2026-01-31T12:00:00",
            "write a date as ISO 8601 text with an offset: 2026-01-31T12:00:00Z"
        ),
        ("12.5", "write a number without quotes"), ("noon", nil), ("", nil),
    ])
    func `a text in an ordered comparison is refused with a hint`(text: String, hint: String?) {
        let error = #expect(throws: PredicateError.self) {
            try RecordPredicate(where: ["made": ["$gt": .string(text)]])
        }
        #expect(error?.hint == hint)
    }

    @Test(arguments: [
        #"{"owner": {"$eq": "\#(uuid)"}}"#, #"{"owners": {"$eq": "\#(uuid)"}}"#,
        #"{"room": {"$eq": "\#(objectID)"}}"#,
    ])
    func `a schema allows a text for these kinds`(json: String) throws {
        let predicate = try RecordPredicate.parse(
            JSONValue(parsing: Array(json.utf8)), dialect: .where, schema: Self.schema)
        #expect(predicate.evaluate(on: try Self.record()) == .true)
    }

    @Test(arguments: [
        #"{"owner": {"$eq": 1}}"#, #"{"room": {"$eq": true}}"#, #"{"blob": {"$eq": "x"}}"#,
        #"{"owner": {"$gt": "2018-09-01T10:31:02.630Z"}}"#, #"{"made": {"$eq": 1}}"#,
    ])
    func `a condition that can never match is still refused`(json: String) throws {
        let predicate = try RecordPredicate(where: JSONValue(parsing: Array(json.utf8)))
        #expect(throws: PredicateError.self) { try predicate.check(schema: Self.schema) }
    }
}
