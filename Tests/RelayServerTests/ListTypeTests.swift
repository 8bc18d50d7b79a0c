import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import RelayServer

/// Lists are answered with the type of their elements, even if they are empty, as CloudKit does.
///
/// Whatever type a client gives is understood.
@Suite struct ListTypeTests {
    /// A written field, and how the relay answers it.
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String { "\(type ?? "no type") \(value)" }
        var value: String
        var type: String?
        var answered: JSONValue
    }

    private static let asset = #"{"fileChecksum":"c","size":3,"downloadURL":"https://x/y"}"#

    static let cases = [
        Case(value: #"["a"]"#, answered: ["value": ["a"], "type": "STRING_LIST"]),
        Case(value: #"["a"]"#, type: "LIST", answered: ["value": ["a"], "type": "STRING_LIST"]),
        Case(value: "[1,2]", answered: ["value": [1, 2], "type": "INT64_LIST"]),
        Case(
            value: "[1,2]", type: "NUMBER_INT64_LIST",
            answered: ["value": [1, 2], "type": "INT64_LIST"]),
        Case(value: "[true]", answered: ["value": [1], "type": "INT64_LIST"]),
        Case(
            value: "[1,2]", type: "DOUBLE_LIST",
            answered: ["value": [.number(1), .number(2)], "type": "DOUBLE_LIST"]),
        Case(value: "[1,2.5]", answered: ["value": [1, .number(2.5)], "type": "DOUBLE_LIST"]),
        Case(
            value: "[1700000000123]", type: "TIMESTAMP_LIST",
            answered: ["value": [1_700_000_000_123], "type": "TIMESTAMP_LIST"]),
        Case(
            value: #"["AQI="]"#, type: "BYTES_LIST",
            answered: ["value": ["AQI="], "type": "BYTES_LIST"]),
        Case(
            value: #"[{"recordName":"r","action":"NONE"}]"#,
            answered: [
                "value": [
                    [
                        "recordName": "r", "action": "NONE",
                        "zoneID": WrittenFormTests.defaultZone,
                    ]
                ], "type": "REFERENCE_LIST",
            ]),
        Case(
            value: #"[{"latitude":1,"longitude":2}]"#,
            answered: ["value": [["latitude": 1, "longitude": 2]], "type": "LOCATION_LIST"]),
        Case(
            value: "[\(asset)]", type: "ASSET_LIST",
            answered: [
                "value": [["fileChecksum": "c", "size": 3, "downloadURL": "https://x/y"]],
                "type": "ASSETID_LIST",
            ]),
        // Elements without a common type become strings, because a client's array has one type.
        Case(value: #"[1,"a"]"#, answered: ["value": ["1", "a"], "type": "STRING_LIST"]),
        Case(
            value: #"[["a"],["b"]]"#,
            answered: ["value": [#"["a"]"#, #"["b"]"#], "type": "STRING_LIST"]),
        Case(value: "[]", answered: ["value": [], "type": "STRING_LIST"]),
        Case(value: "[]", type: "UNKNOWN_LIST", answered: ["value": [], "type": "STRING_LIST"]),
        Case(value: "[]", type: "LIST", answered: ["value": [], "type": "STRING_LIST"]),
        Case(value: "[]", type: "INT64_LIST", answered: ["value": [], "type": "INT64_LIST"]),
        Case(
            value: "[]", type: "REFERENCE_LIST",
            answered: ["value": [], "type": "REFERENCE_LIST"]),
        Case(value: "[]", type: "ASSETID_LIST", answered: ["value": [], "type": "ASSETID_LIST"]),
    ]

    private static func field(_ value: String, _ type: String?) -> String {
        let type = type.map { #","type":"\#($0)""# } ?? ""
        return #"{"value":\#(value)\#(type)}"#
    }

    private static func write(
        _ field: String, kind: String = "create", to relay: TestRelay
    ) async throws -> TestRelay.Answer {
        try await relay.post(
            "records/modify",
            #"{"operations":[{"operationType":"\#(kind)","record":{"recordName":"n","#
                + #""recordType":"Note","fields":{"f":\#(field)}}}]}"#)
    }

    private static let place = ["records", "0", "fields", "f"]

    @Test(arguments: cases)
    func `a list has the type of its elements in the answer and afterwards`(
        _ one: Case
    ) async throws {
        try await TestRelay.with { relay in
            let written = try await Self.write(Self.field(one.value, one.type), to: relay)
            #expect(written.json.value(at: Self.place) == one.answered, "\(written.text)")
            let read = try await relay.post("records/lookup", #"{"records":["n"]}"#)
            #expect(read.json.value(at: Self.place) == one.answered, "\(read.text)")
            // A client sends back what it has read.
            let again = try await Self.write(
                one.answered.text, kind: "forceUpdate", to: relay)
            #expect(again.json.value(at: Self.place) == one.answered, "\(again.text)")
        }
    }

    @Test func `a reference returned with the default zone takes no more space`() throws {
        let zone = WrittenFormTests.defaultZone
        let plain: JSONValue = ["recordName": "r", "zoneID": zone, "action": "NONE"]
        let bound: JSONValue = ["recordName": "r", "zoneID": zone, "action": "DELETE_SELF"]
        let fields: JSONValue = [
            "one": ["value": plain, "type": "REFERENCE"],
            "many": ["value": [plain, plain], "type": "REFERENCE_LIST"],
            "bound": ["value": bound, "type": "REFERENCE"],
        ]
        let reading = try RecordFieldReading(definition: nil, impliedOwner: nil)
            .read(JSONReader(fields))
        #expect(reading.wire == ["bound": bound])
    }

    @Test func `an empty list has the schema's type whatever the client calls it`()
        async throws
    {
        try await TestRelay.with { relay in
            _ = try await Self.write(Self.field("[5]", nil), to: relay)
            for type in [nil, "LIST", "UNKNOWN_LIST", "INT64_LIST", "STRING_LIST"] {
                let answer = try await Self.write(
                    Self.field("[]", type), kind: "forceUpdate", to: relay)
                #expect(
                    answer.json.value(at: Self.place) == ["value": [], "type": "INT64_LIST"],
                    "\(answer.text)")
            }
            let other = try await Self.write(
                Self.field(#"["a"]"#, "STRING_LIST"), kind: "forceUpdate", to: relay)
            #expect(
                other.json.value(at: ["records", "0", "serverErrorCode"]) == "BAD_REQUEST",
                "\(other.text)")
        }
    }

    @Test func `an empty list of an unknown type defines no type`() async throws {
        try await TestRelay.with { relay in
            _ = try await Self.write(Self.field("[]", nil), to: relay)
            _ = try await Self.write(
                Self.field("[]", "STRING_LIST"), kind: "forceUpdate", to: relay)
            let answer = try await Self.write(
                Self.field("[1.5]", nil), kind: "forceUpdate", to: relay)
            #expect(
                answer.json.value(at: Self.place) == [
                    "value": [.number(1.5)], "type": "DOUBLE_LIST",
                ],
                "\(answer.text)")
        }
    }

    @Test(arguments: [
        #"{"value":"a","type":"LIST"}"#, #"{"value":["a"],"type":"LISTS"}"#,
        #"{"value":"a","type":"STRING_LIST"}"#, #"{"value":[1],"type":"STRING_LIST"}"#,
    ])
    func `a list that does not fit its type is refused`(field: String) async throws {
        try await TestRelay.with { relay in
            let answer = try await Self.write(field, to: relay)
            #expect(
                answer.json.value(at: ["records", "0", "serverErrorCode"]) == "BAD_REQUEST",
                "\(answer.text)")
        }
    }

    /// Databases send lists that no client may write.
    @Test func `a list from a database loses its nulls`() {
        let cases: [(FieldValue, String, JSONValue)] = [
            (.list([.integer(1), .string("a"), .null]), "STRING_LIST", ["1", "a"]),
            (.list([.null]), "STRING_LIST", []), (.set([.null]), "STRING_LIST", []),
            (.list([.integer(1), .null]), "INT64_LIST", [1]),
            (.list([.list([.null])]), "STRING_LIST", ["[null]"]),
        ]
        for (value, type, answered) in cases {
            let field = AnsweredField(value, wire: nil, known: nil, numbers: .asNumbers)
            #expect(field.type == type && field.value == answered, "\(value): \(field)")
        }
    }

    @Test func `a whole number in a double field becomes a double`() {
        let known = [SchemaFieldType(.double), SchemaFieldType(.int64), nil]
        let types = known.map { known in
            AnsweredField(.integer(5), wire: nil, known: known, numbers: .asNumbers).type
        }
        #expect(types == ["DOUBLE", "INT64", "INT64"])
    }

    @Test(arguments: ["LIST", "UNKNOWN_LIST", "STRING_LIST", nil])
    func `a filter's list uses the same type names`(type: String?) async throws {
        try await TestRelay.with { relay in
            _ = try await Self.write(Self.field(#""a""#, nil), to: relay)
            let answer = try await relay.post(
                "records/query",
                #"{"query":{"recordType":"Note","filterBy":[{"comparator":"IN","fieldName":"f","#
                    + #""fieldValue":"# + Self.field(#"["a","b"]"#, type) + "}]}}")
            #expect(
                answer.json.value(at: ["records", "0", "recordName"]) == "n", "\(answer.text)")
        }
    }
}
