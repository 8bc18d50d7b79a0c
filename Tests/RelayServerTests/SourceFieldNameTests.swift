import RelayModel
import Testing

@testable import RelayServer

/// Field names that a client could not use, but receives in records of a source.
@Suite struct SourceFieldNameTests {
    private static func read(_ name: String) throws -> RecordFields {
        let type = try #require(RecordType(rawValue: "Order"))
        let known = FieldDefinition(SchemaFieldType(.string), uses: [])
        let definition = RecordTypeDefinition(type, fields: ["_id": known, "___etag": known])
        var fields: JSONObject = [:]
        fields[name] = ["value": "7", "type": "STRING"]
        return try RecordFieldReading(definition: definition, impliedOwner: nil)
            .read(JSONReader(.object(fields))).fields
    }

    @Test func `a known name can be saved back`() throws {
        #expect(try Self.read("_id") == ["_id": .string("7")])
    }

    @Test(arguments: ["_rev", "a b", "", "___etag", "___createTime", "recordName"])
    func `no other such name is accepted`(name: String) {
        #expect(throws: JSONContractError.self) { try Self.read(name) }
    }
}
