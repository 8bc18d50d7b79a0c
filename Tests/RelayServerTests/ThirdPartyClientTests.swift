import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// Exact requests of further CloudKit Web Services clients, and what they read of the answers.
///
/// The clients are CloudKitPy, PyCloudKit, CloudKit-PHP, cloudkit-js, cloudkit-mcp,
/// cloudkit_flutter, apple-go, apple-rs, CloudKitClient (Kotlin), angular-cloudkit and
/// OpenCloudKit.
@Suite struct ThirdPartyClientTests {
    /// One request, and the values expected at some places of its answer.
    struct Exchange: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// The requests that are made first.
        var before: [(path: String, body: String)] = []
        var path: String
        var body: String
        var database = "private"
        /// Expected values, by dotted paths in the answer.
        var expected: [String: JSONValue]
        /// Paths at which the answer must have no value.
        var absent: [String] = []
    }

    private static let create =
        #"{"operations":[{"operationType":"create","record":{"recordName":"n1","recordType":"Note","#
        + #""fields":{"text":{"value":"a","type":"STRING"},"count":{"value":1,"type":"INT64"}}}}]}"#

    private static let note = ("records/modify", create)

    private static let second = (
        "records/modify",
        #"{"operations":[{"operationType":"create","record":{"recordName":"n2","#
            + #""recordType":"Note","fields":{"text":{"value":"b"}}}}]}"#
    )

    // MARK: Records

    static let records: [Exchange] = [
        Exchange(
            testDescription: "CloudKitPy sends every member, most of them null",
            path: "records/modify",
            body: #"{"operations":[{"operationType":"create","record":{"recordName":null,"#
                + #""recordType":"Note","recordChangeTag":null,"fields":{"text":{"value":"a"}},"#
                + #""created":null,"modified":null,"deleted":null}}]}"#,
            expected: ["records.0.fields.text.value": "a", "records.0.deleted": false]),
        Exchange(
            testDescription: "CloudKitPy looks up with desiredKeys that are null", before: [note],
            path: "records/lookup",
            body: #"{"records":[{"recordName":"n1","desiredKeys":null}]}"#,
            expected: ["records.0.fields.text.value": "a", "records.0.fields.count.value": 1]),
        Exchange(
            testDescription: "cloudkit-js looks up one record with keys of its own",
            before: [note], path: "records/lookup",
            body: #"{"records":[{"recordName":"n1","desiredKeys":["count"]}]}"#,
            expected: ["records.0.fields.count.value": 1], absent: ["records.0.fields.text"]),
        Exchange(
            testDescription: "CloudKit-PHP writes the types of 2016 and none for a boolean",
            path: "records/modify",
            body: #"{"operations":[{"record":{"recordName":null,"recordType":"Note","fields":{"#
                + #""count":{"type":"NUMBER_INT64","value":5},"part":{"type":"NUMBER_DOUBLE","#
                + #""value":2.5},"done":{"type":null,"value":true}}},"operationType":"create"}]}"#,
            expected: [
                "records.0.fields.count.type": "INT64", "records.0.fields.part.type": "DOUBLE",
                "records.0.fields.done.value": 1,
            ]),
        Exchange(
            testDescription: "CloudKitClient for Kotlin has words of its own for types",
            path: "records/modify",
            body: #"{"operations":[{"operationType":"create","record":{"recordType":"Note","#
                + #""fields":{"count":{"type":"INT","value":5},"part":{"type":"BYTE","#
                + #""value":"AQI="},"at":{"type":"DATETIME","value":1600000000000},"#
                + #""sizes":{"type":"INT_LIST","value":[1]}}}}]}"#,
            expected: [
                "records.0.fields.count.type": "INT64", "records.0.fields.part.type": "BYTES",
                "records.0.fields.at.type": "TIMESTAMP",
                "records.0.fields.sizes.type": "INT64_LIST",
            ]),
        Exchange(
            testDescription: "PHP writes an empty dictionary as an array", path: "records/modify",
            body: #"{"operations":[{"operationType":"create","#
                + #""record":{"recordType":"Note","fields":[]}}]}"#,
            expected: ["records.0.recordType": "Note", "records.0.fields": [:]]),
        Exchange(
            testDescription: "CloudKit-PHP leaves the type of a stored record out of updates",
            before: [note], path: "records/modify",
            body: #"{"operations":[{"operationType":"forceUpdate","#
                + #""record":{"recordName":"n1","fields":{"text":{"type":"STRING","value":"b"}}}}]}"#,
            expected: ["records.0.recordType": "Note", "records.0.fields.text.value": "b"]),
        Exchange(
            testDescription: "an update without a type of a record that is not there",
            path: "records/modify",
            body: #"{"operations":[{"operationType":"update","record":{"recordName":"gone","#
                + #""recordChangeTag":"1","fields":{"text":{"value":"b"}}}}]}"#,
            expected: ["records.0.serverErrorCode": "NOT_FOUND", "records.0.recordName": "gone"]),
        Exchange(
            testDescription: "a forced update without a type of a record that is not there",
            path: "records/modify",
            body: #"{"operations":[{"operationType":"forceUpdate","#
                + #""record":{"recordName":"gone","fields":{"text":{"value":"b"}}}}]}"#,
            expected: [
                "records.0.serverErrorCode": "BAD_REQUEST",
                "records.0.reason": "recordType is required for a new record",
            ]),
        Exchange(
            testDescription: "whole numbers that are written as 3.0", path: "records/modify",
            body: #"{"operations":[{"operationType":"create","record":{"recordType":"Note","#
                + #""fields":{"count":{"value":3.0,"type":"INT64"},"#
                + #""at":{"value":1600000000000.0,"type":"TIMESTAMP"}}}}]}"#,
            expected: [
                "records.0.fields.count.value": 3, "records.0.fields.at.value": 1_600_000_000_000,
            ]),
        Exchange(
            testDescription: "Python's clock is a fraction, also in a stamp that is sent along",
            path: "records/modify",
            body: #"{"operations":[{"operationType":"create","record":{"recordType":"Note","#
                + #""fields":{"count":{"value":3}},"modified":{"timestamp":1600000000123.4,"#
                + #""userRecordName":"_alice","deviceID":"2"}}}]}"#,
            expected: ["records.0.fields.count.value": 3]),
        Exchange(
            testDescription: "a fraction of a millisecond", path: "records/modify",
            body: #"{"operations":[{"operationType":"create","record":{"recordType":"Note","#
                + #""fields":{"at":{"value":1600000000000.5,"type":"TIMESTAMP"}}}}]}"#,
            expected: ["records.0.serverErrorCode": "BAD_REQUEST"]),
        Exchange(
            testDescription: "OpenCloudKit drops a stamp without user and device", before: [note],
            path: "records/lookup", body: #"{"records":[{"recordName":"n1"}]}"#,
            expected: [
                "records.0.created.userRecordName": "_alice", "records.0.created.deviceID": "2",
                "records.0.modified.deviceID": "2",
            ]),
        Exchange(
            testDescription: "cloudkit_flutter reads the fields of what is deleted",
            before: [
                note,
                (
                    "records/modify",
                    #"{"operations":[{"operationType":"forceDelete","#
                        + #""record":{"recordName":"n1","recordType":"Note"}}]}"#
                ),
            ], path: "changes/zone",
            body: #"{"zones":[{"zoneID":{"zoneName":"_defaultZone"},"resultsLimit":10}]}"#,
            expected: [
                "zones.0.records.0.deleted": true, "zones.0.records.0.fields": [:],
                "zones.0.moreComing": false,
            ]),
        Exchange(
            testDescription: "pages say beside the zones how many records they want",
            before: [note, second], path: "changes/zone",
            body: #"{"zones":[{"zoneID":{"zoneName":"_defaultZone"}}],"resultsLimit":1}"#,
            expected: ["zones.0.records.0.recordName": "n1", "zones.0.moreComing": true],
            absent: ["zones.0.records.1"]),
        Exchange(
            testDescription: "a zone asks for numbers as texts",
            before: [note], path: "changes/zone",
            body: #"{"zones":[{"zoneID":{"zoneName":"_defaultZone"},"numbersAsStrings":true}]}"#,
            expected: ["zones.0.records.0.fields.count.value": "1"]),
        Exchange(
            testDescription: "a zone has the last word about its numbers",
            before: [note], path: "changes/zone",
            body: #"{"zones":[{"zoneID":{"zoneName":"_defaultZone"},"numbersAsStrings":false}],"#
                + #""numbersAsStrings":true}"#,
            expected: ["zones.0.records.0.fields.count.value": 1]),
        Exchange(
            testDescription: "record types are named beside the zones",
            before: [note], path: "changes/zone",
            body: #"{"zones":[{"zoneID":{"zoneName":"_defaultZone"}}],"#
                + #""desiredRecordTypes":["Other"]}"#,
            expected: ["zones.0.moreComing": false], absent: ["zones.0.records.0"]),
        Exchange(
            testDescription: "an order that the relay does not have is refused beside the zones",
            before: [note], path: "changes/zone",
            body: #"{"zones":[{"zoneID":{"zoneName":"_defaultZone"}}],"reverse":true}"#,
            expected: ["zones.0.serverErrorCode": "BAD_REQUEST"]),
    ]

    // MARK: Queries

    private static func query(_ filter: String) -> String {
        #"{"query":{"recordType":"Note","filterBy":[\#(filter)],"sortBy":[]},"zoneID":null,"#
            + #""zoneWide":false,"resultsLimit":50,"desiredKeys":[],"numbersAsStrings":true}"#
    }

    private static func query(_ name: String, _ field: String, _ value: String) -> Exchange {
        Exchange(
            testDescription: name, before: [note], path: "records/query",
            body: query(
                #"{"\#(field)","comparator":"EQUALS","fieldValue":{"value":\#(value)},"#
                    + #""distance":null}"#),
            expected: ["records.0.recordName": "n1", "records.0.fields": [:]])
    }

    static let queries: [Exchange] = [
        query("cloudkit-mcp leaves types out", #"fieldName":"text"#, #""a""#),
        query(
            "CloudKit JS names a record by a reference", #"systemFieldName":"recordName"#,
            #"{"recordName":"n1"}"#),
        query("a record by its name", #"systemFieldName":"recordName"#, #""n1""#),
        query("the schema's name of it", #"fieldName":"___recordID"#, #"{"recordName":"n1"}"#),
        query("and that with a text", #"fieldName":"___recordID"#, #""n1""#),
        query(
            "who created it, by a reference", #"systemFieldName":"createdUserRecordName"#,
            #"{"recordName":"_alice"}"#),
        query(
            "who created it, by name", #"systemFieldName":"createdUserRecordName"#, #""_alice""#),
        query("the native name", #"fieldName":"creatorUserRecordID"#, #""_alice""#),
        query("who changed it", #"systemFieldName":"modifiedUserRecordName"#, #""_alice""#),
        Exchange(
            testDescription: "CloudKitClient for Kotlin compares with a number",
            before: [note, second], path: "records/query",
            body: query(
                #"{"fieldName":"count","comparator":"EQUALS","fieldValue":{"type":"INT","#
                    + #""value":1},"distance":null}"#),
            expected: ["records.0.recordName": "n1"], absent: ["records.1"]),
        Exchange(
            testDescription: "DroidNubeKit writes how many records it wants as a text",
            before: [note, second], path: "records/query",
            body: #"{"query":{"recordType":"Note"},"resultsLimit":"1"}"#,
            expected: ["records.0.recordName": "n1"], absent: ["records.1"]),
        Exchange(
            testDescription: "several records by name", before: [note], path: "records/query",
            body: query(
                #"{"systemFieldName":"recordName","comparator":"IN","fieldValue":{"value":"#
                    + #"[{"recordName":"n1"},{"recordName":"n2"}],"type":"REFERENCE_LIST"}}"#),
            expected: ["records.0.recordName": "n1"]),
        Exchange(
            testDescription: "the newest first", before: [note], path: "records/query",
            body: #"{"query":{"recordType":"Note","sortBy":[{"systemFieldName":"#
                + #""createdTimestamp","ascending":false},{"fieldName":"___modTime"}]}}"#,
            expected: ["records.0.recordName": "n1"]),
    ]

    // MARK: Zones, users, subscriptions, tokens

    private static func subscription(_ filter: String) -> String {
        #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"s","#
            + #""subscriptionType":"query","firesOn":["create"],"query":{"recordType":"Note","#
            + #""filterBy":[\#(filter)]}}}]}"#
    }

    static let others: [Exchange] = [
        Exchange(
            testDescription: "cloudkit-mcp looks zones up by their bare IDs", path: "zones/lookup",
            body: #"{"zones":[{"zoneName":"_defaultZone","ownerRecordName":"_alice"}]}"#,
            expected: ["zones.0.zoneID.zoneName": "_defaultZone", "zones.0.atomic": false]),
        Exchange(
            testDescription: "angular-cloudkit looks a single zone up", path: "zones/lookup",
            body: #"{"zones":{"zoneName":"_defaultZone"}}"#,
            expected: ["zones.0.zoneID.zoneName": "_defaultZone"]),
        Exchange(
            testDescription: "a zone that is not there, by its name", path: "zones/lookup",
            body: #"{"zones":["nowhere"]}"#,
            expected: [
                "zones.0.serverErrorCode": "ZONE_NOT_FOUND",
                "zones.0.zoneID.zoneName": "nowhere",
            ]),
        Exchange(
            testDescription: "apple-go asks for changes by bare IDs", before: [note],
            path: "changes/zone", body: #"{"zones":[{"zoneName":"_defaultZone"}]}"#,
            expected: ["zones.0.records.0.recordName": "n1"]),
        Exchange(
            testDescription: "Apple's text names the token of zones/changes as elsewhere",
            before: [note], path: "zones/changes", body: "{}",
            expected: ["zones.0.zoneID.zoneName": "_defaultZone", "moreComing": false]),
        Exchange(
            testDescription: "MistKit discovers users as it looks them up", path: "users/discover",
            body: #"{"users":[{"userRecordName":"_bob"}]}"#, database: "public",
            expected: ["users.0.userRecordName": "_bob"]),
        Exchange(
            testDescription: "apple-go looks addresses up", path: "users/lookup/email",
            body: #"{"emailAddresses":["b@example.com"]}"#, database: "public",
            expected: [
                "users.0.serverErrorCode": "NOT_FOUND",
                "users.0.lookupInfo.emailAddress": "b@example.com",
            ]),
        Exchange(
            testDescription: "cloudkit_flutter says fireOnce", path: "subscriptions/modify",
            body: #"{"operations":[{"operationType":"create","subscription":{"#
                + #""subscriptionType":"query","subscriptionID":"s","zoneID":{"zoneName":"#
                + #""_defaultZone"},"notificationInfo":{"shouldSendContentAvailable":true},"#
                + #""query":{"recordType":"Note","filterBy":[],"sortBy":[]},"#
                + #""firesOn":["create"],"fireOnce":true,"zoneWide":false}}]}"#,
            expected: [
                "subscriptions.0.firesOnce": true,
                "subscriptions.0.zoneID.zoneName": "_defaultZone",
            ]),
        Exchange(
            testDescription: "CloudKitPy's subscription, with every member",
            path: "subscriptions/modify",
            body: #"{"operations":[{"operationType":"create","subscription":{"zoneID":null,"#
                + #""subscriptionID":null,"subscriptionType":"query","query":{"recordType":"Note","#
                + #""filterBy":null,"sortBy":null},"firesOn":["update"],"firesOnce":null,"#
                + #""notificationInfo":{"alertBody":"x","alertLocalizationKey":null,"#
                + #""alertLocalizationArgs":null,"alertActionLocalizationKey":null,"#
                + #""alertLaunchImage":null,"soundName":null,"shouldBadge":null,"#
                + #""shouldSendContentAvailable":null},"zoneWide":null}}]}"#,
            expected: [
                "subscriptions.0.notificationInfo.alertBody": "x",
                "subscriptions.0.subscriptionType": "query",
            ]),
        Exchange(
            testDescription: "a watcher in Python names localised titles as the service does",
            path: "subscriptions/modify",
            body: #"{"operations":[{"operationType":"create","subscription":{"#
                + #""subscriptionID":"improv/1","subscriptionType":"query","query":{"recordType":"#
                + #""Note"},"firesOn":["create"],"firesOnce":false,"zoneWide":true,"#
                + #""notificationInfo":{"titleLocalizedKey":"T","#
                + #""titleLocalizedArguments":["text"],"subtitleLocalizedKey":"S","#
                + #""subtitleLocalizedArguments":["count"],"#
                + #""alertLocalizationKey":"B","soundName":"default"}}}]}"#,
            expected: [
                "subscriptions.0.notificationInfo": [
                    "alertLocalizationKey": "B", "titleLocalizedKey": "T",
                    "titleLocalizedArguments": ["text"], "subtitleLocalizedKey": "S",
                    "subtitleLocalizedArguments": ["count"], "soundName": "default",
                ]
            ]),
        Exchange(
            testDescription: "titles by the names of two vocabularies",
            path: "subscriptions/modify",
            body: #"{"operations":[{"operationType":"create","subscription":{"#
                + #""subscriptionID":"s","subscriptionType":"query","query":{"recordType":"Note"},"#
                + #""firesOn":["create"],"notificationInfo":{"titleLocalizedKey":"T","#
                + #""titleLocalizationArgs":["text"]}}}]}"#,
            expected: [
                "subscriptions.0.serverErrorCode": "BAD_REQUEST",
                "subscriptions.0.reason": .string(
                    "operations[0].subscription.notificationInfo.titleLocalizationArgs: is a "
                        + "native class's name beside names of the web service: use the names of "
                        + "only one"),
            ]),
        Exchange(
            testDescription: "AgileCloudSDK calls oneself as the native classes do",
            path: "subscriptions/modify",
            body: #"{"operations":[{"operationType":"create","subscription":{"#
                + #""subscriptionID":"s","subscriptionType":"zone","zoneID":{"zoneName":"g","#
                + #""ownerName":"__defaultOwner__"},"firesOnce":false,"zoneWide":true,"#
                + #""notificationInfo":{}}}]}"#,
            expected: ["subscriptions.0.zoneID": ["zoneName": "g"]]),
        Exchange(
            testDescription: "Swift's encoder writes members in another order each time",
            before: [
                (
                    "subscriptions/modify",
                    subscription(
                        #"{"comparator":"EQUALS","fieldName":"text","fieldValue":{"value":"a","#
                            + #""type":"STRING"}}"#)
                )
            ], path: "subscriptions/modify",
            body: subscription(
                #"{"fieldValue":{"type":"STRING","value":"a"},"fieldName":"text","#
                    + #""comparator":"EQUALS"}"#),
            expected: ["subscriptions.0.subscriptionID": "s"],
            absent: ["subscriptions.0.serverErrorCode"]),
        Exchange(
            testDescription: "a subscription is looked up by the whole of it",
            path: "subscriptions/lookup",
            body: #"{"subscriptions":[{"subscriptionID":"none","subscriptionType":"zone"}]}"#,
            expected: ["subscriptions.0.serverErrorCode": "NOT_FOUND"]),
        Exchange(
            testDescription: "CloudKitClient creates a token under a database",
            path: "tokens/create", body: #"{"apnsEnvironment":"development"}"#,
            database: "public", expected: ["apnsEnvironment": "development"]),
    ]

    @Test(arguments: records + queries + others)
    func `clients:`(_ exchange: Exchange) async throws {
        try await TestRelay.with { relay in
            for (path, body) in exchange.before {
                let answer = try await relay.post(path, body, database: "private")
                #expect(!answer.text.contains("serverErrorCode"), "\(answer.text)")
            }
            let answer = try await relay.post(
                exchange.path, exchange.body, database: exchange.database)
            #expect(answer.status == 200, "\(answer.text)")
            for (place, value) in exchange.expected {
                let found = answer.json.value(at: place.split(separator: ".").map(String.init))
                #expect(found == value, "\(place) in \(answer.text)")
            }
            for place in exchange.absent {
                let found = answer.json.value(at: place.split(separator: ".").map(String.init))
                #expect(found == nil, "\(place) in \(answer.text)")
            }
        }
    }

    @Test func `zones are listed again after either name of their token`() async throws {
        try await TestRelay.with { relay in
            _ = try await relay.post(Self.note.0, Self.note.1, database: "private")
            let first = try await relay.post("zones/changes", "{}", database: "private")
            let token = try #require(first["metaSyncToken"])
            #expect(first["syncToken"] == token)
            for name in ["metaSyncToken", "syncToken"] {
                let next = try await relay.post(
                    "zones/changes", #"{"\#(name)":\#(token.text)}"#, database: "private")
                #expect(next["zones"] == [], "\(next.text)")
            }
        }
    }
}
