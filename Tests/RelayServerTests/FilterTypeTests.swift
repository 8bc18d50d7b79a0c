import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// What `filterBy` means for fields whose type the client cannot name, or does not name.
@Suite struct FilterTypeTests {
    private static let uuid = "8F3C9A10-0000-4000-8000-0123456789AB"
    private static let objectID = "64b7f1c2a1b2c3d4e5f60718"

    private static func define(_ relay: TestRelay) async throws {
        let types = [
            ("owner", "UUID"), ("owners", "UUID_LIST"), ("room", "OBJECTID"), ("name", "STRING"),
            ("at", "TIMESTAMP"), ("count", "INT64"), ("counts", "INT64_LIST"),
        ]
        let fields = types.map { name, type -> JSONValue in
            ["name": .string(name), "type": .string(type), "queryable": true]
        }
        let type: JSONValue = ["name": "Order", "fields": .array(fields)]
        let schema: JSONValue = ["recordTypes": [type]]
        let answer = try await relay.admin(
            .put, "containers/iCloud.com.example.Art/development/schema", schema.text)
        #expect(answer.status == 200, "\(answer.text)")
    }

    /// Saves a subscription with one filter, and returns its entry.
    private static func save(_ relay: TestRelay, _ filter: String) async throws -> JSONValue {
        let answer = try await relay.post(
            "subscriptions/modify",
            #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"s","#
                + #""subscriptionType":"query","firesOn":["create"],"query":{"recordType":"#
                + #""Order","filterBy":[\#(filter)]}}}]}"#)
        return try #require(answer.json.value(at: ["subscriptions", "0"]), "\(answer.text)")
    }

    private static func filter(
        _ field: String, _ comparator: String, _ fieldValue: String
    ) -> String {
        #"{\#(field),"comparator":"\#(comparator)","fieldValue":{\#(fieldValue)}}"#
    }

    private static let owner = #"CAST("\#(uuid.lowercased())", "NSUUID")"#

    static let filters: [(String, String)] = [
        (
            filter(#""fieldName":"owner""#, "EQUALS", #""type":"STRING","value":"\#(uuid)""#),
            "owner == \(owner)"
        ),
        (
            filter(#""fieldName":"owner""#, "NOT_EQUALS", #""value":"\#(uuid)","type":null"#),
            "owner != \(owner)"
        ),
        (
            filter(#""fieldName":"owner""#, "IN", #""type":"STRING_LIST","value":["\#(uuid)"]"#),
            "owner IN {\(owner)}"
        ),
        (
            filter(#""fieldName":"owners""#, "LIST_CONTAINS", #""value":"\#(uuid)""#),
            "owners CONTAINS \(owner)"
        ),
        (
            filter(#""fieldName":"room""#, "EQUALS", #""type":"STRING","value":"\#(objectID)""#),
            #"room == CAST("\#(objectID)", "ObjectId")"#
        ),
        (
            filter(#""fieldName":"name""#, "EQUALS", #""type":"STRING","value":"\#(uuid)""#),
            #"name == "\#(uuid)""#
        ),
        (
            filter(#""fieldName":"at""#, "EQUALS", #""type":null,"value":978307200000"#),
            #"at == CAST(0.000000, "NSDate")"#
        ),
        // The relay answers integers so to clients that ask for numbers as strings.
        (
            filter(#""fieldName":"count""#, "EQUALS", #""value":"9007199254740993""#),
            "count == 9007199254740993"
        ),
        (
            filter(#""fieldName":"count""#, "IN", #""value":["1","2"]"#), "count IN {1, 2}"
        ),
        (
            filter(#""fieldName":"counts""#, "LIST_CONTAINS", #""value":"1""#),
            "counts CONTAINS 1"
        ),
        (
            filter(
                #""fieldName":null,"systemFieldName":"createdTimestamp""#, "LESS_THAN",
                #""value":978307200000"#), #"createdTimestamp < CAST(0.000000, "NSDate")"#
        ),
    ]

    @Test(arguments: filters)
    func `a filter's value is read by the type of its field`(
        filter: String, canonical: String
    ) async throws {
        try await TestRelay.with { relay in
            try await Self.define(relay)
            let saved = try await Self.save(relay, filter)
            #expect(
                saved.value(at: ["query", "canonicalPredicate"]) == .string(canonical),
                "\(saved.text)")
            // Strict clients fail at a type that they do not know.
            let type = saved.value(at: ["query", "filterBy", "0", "fieldValue", "type"])
            #expect(type != "UUID" && type != "OBJECTID")
            // Saving the same filter again changes nothing, whether as the client wrote it or as it
            // was answered.
            for again in [filter, saved.value(at: ["query", "filterBy", "0"])?.text ?? ""] {
                let entry = try await Self.save(relay, again)
                #expect(entry.value(at: ["serverErrorCode"]) == nil, "\(entry.text)")
            }
        }
    }

    @Test(arguments: [
        Self.filter(#""fieldName":"owner""#, "EQUALS", #""value":"nobody""#),
        Self.filter(#""fieldName":"owner""#, "BEGINS_WITH", #""value":"8f""#),
        Self.filter(#""fieldName":"owner""#, "EQUALS", #""value":"x","databaseType":"STRING""#),
        Self.filter(#""fieldName":"count""#, "EQUALS", #""value":"one""#),
        // For a string field, these would search for a part of the string.
        Self.filter(#""fieldName":"name""#, "LIST_CONTAINS", #""value":"x""#),
        Self.filter(#""fieldName":"name""#, "NOT_LIST_CONTAINS", #""value":"x""#),
        Self.filter(#""fieldName":"name""#, "LIST_CONTAINS_ALL", #""value":["x","y"]"#),
    ])
    func `a value that is no UUID or number is refused`(filter: String) async throws {
        try await TestRelay.with { relay in
            try await Self.define(relay)
            let saved = try await Self.save(relay, filter)
            #expect(saved.value(at: ["serverErrorCode"]) == "BAD_REQUEST", "\(saved.text)")
        }
    }
}
