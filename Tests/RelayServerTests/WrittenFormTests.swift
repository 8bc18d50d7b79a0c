import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import RelayServer

/// Values are answered in the form of their declared type, whatever a client wrote.
///
/// Clients decode the dictionaries of records strictly.
@Suite struct WrittenFormTests {
    private static func write(
        _ field: String, to relay: TestRelay
    ) async throws -> TestRelay.Answer {
        try await relay.post(
            "records/modify",
            #"{"operations":[{"operationType":"forceUpdate","record":{"recordName":"n","#
                + #""recordType":"Note","fields":{"f":\#(field)}}}]}"#)
    }

    /// The default zone of the public database in answers.
    static let defaultZone: JSONValue = [
        "zoneName": "_defaultZone", "ownerRecordName": "_defaultOwner", "zoneType": "DEFAULT_ZONE",
    ]

    /// Live clients may ask for the bare value of each field.
    @Test func `a reference has its zone even without its type`() {
        let made = RecordStamp(at: Fixtures.moment, userID: nil, deviceID: nil)
        let reference = FieldValue.reference(
            RecordReference(RecordID(recordName: Fixtures.identifier("r"))))
        let record = ShadowRecord(
            recordID: RecordID(recordName: Fixtures.identifier("n")),
            recordType: Fixtures.identifier("Note"),
            fields: ["one": reference, "many": .list([reference]), "text": .string("r")],
            created: made, modified: made, source: .cloudKit, position: LogPosition(1))
        let place = RecordPlace(container: Fixtures.container, database: .public, owner: nil)
        let caller = RecordCaller(
            place: place, user: nil, isServer: true, schema: ContainerSchema(), redirectURL: "",
            store: UUIDBytes(high: 1, low: 1))
        var form = RecordJSON(numbers: .asNumbers)
        form.isPlain = true
        let fields = form.record(record, for: caller)["fields"]
        let whole: JSONValue = ["recordName": "r", "action": "NONE", "zoneID": Self.defaultZone]
        #expect(fields?.value(at: ["one"]) == whole)
        #expect(fields?.value(at: ["many"]) == [whole])
        #expect(fields?.value(at: ["text"]) == "r")
    }

    /// Frames of live clients are written without the object.
    @Test(arguments: [false, true], [nil, ["one", "text"]] as [[String]?])
    func `the text of a record is that of its object`(isDeleted: Bool, keys: [String]?) {
        let made = RecordStamp(at: Fixtures.moment, userID: Fixtures.identifier("a"), deviceID: nil)
        let reference = FieldValue.reference(
            RecordReference(RecordID(recordName: Fixtures.identifier("r"))))
        var record = ShadowRecord(
            recordID: RecordID(recordName: Fixtures.identifier("n\"\\")),
            recordType: Fixtures.identifier("Note"),
            fields: isDeleted
                ? [:]
                : [
                    "one": reference, "many": .list([reference, .integer(3)]), "e": .list([]),
                    "text": .string("a\n\u{1}\"é"), "half": .double(0.5),
                ],
            created: made, modified: made, source: .cloudKit, position: LogPosition(1))
        record.isDeleted = isDeleted
        let caller = RecordCaller(
            place: RecordPlace(container: Fixtures.container, database: .private, owner: nil),
            user: nil, isServer: true, schema: ContainerSchema(), redirectURL: "",
            store: UUIDBytes(high: 1, low: 1))
        for (isPlain, showsTag) in [(false, true), (true, false)] {
            var form = RecordJSON(numbers: .asStrings).showing(keys)
            (form.isPlain, form.showsChangeTag) = (isPlain, showsTag)
            var writer = JSONObjectWriter()
            form.write(record, for: caller, to: &writer)
            let object = form.record(record, for: caller)
            let text = String(decoding: writer.finish(), as: UTF8.self)
            #expect(text == JSONValue.object(object).text)
            #expect((object["recordChangeTag"] != nil) == showsTag)
            #expect((object["created"] == nil) == isDeleted)
        }
    }

    static let answered: [(String, JSONValue)] = [
        (#"{"value":{"a":1}}"#, ["value": #"{"a":1}"#, "type": "STRING"]),
        (
            #"{"value":{"recordName":"r"},"type":"REFERENCE"}"#,
            [
                "value": ["recordName": "r", "action": "NONE", "zoneID": defaultZone],
                "type": "REFERENCE",
            ]
        ),
        (
            #"{"value":{"recordName":"r","action":"None","zoneID":null}}"#,
            [
                "value": ["recordName": "r", "action": "NONE", "zoneID": defaultZone],
                "type": "REFERENCE",
            ]
        ),
        (
            #"{"value":{"recordName":"r","action":"DELETE_SELF","zoneID":"_defaultZone"}}"#,
            [
                "value": [
                    "recordName": "r", "action": "DELETE_SELF", "zoneID": defaultZone,
                ], "type": "REFERENCE",
            ]
        ),
        (
            #"{"value":{"latitude":"1.5","longitude":2.5,"course":"7","speed":null},"#
                + #""type":"LOCATION"}"#,
            [
                "value": ["latitude": .number(1.5), "longitude": .number(2.5), "course": 7],
                "type": "LOCATION",
            ]
        ),
    ]

    @Test(arguments: answered)
    func `a value is answered in the form of its type`(
        field: String, answer: JSONValue
    ) async throws {
        try await TestRelay.with { relay in
            let written = try await Self.write(field, to: relay)
            let place = ["records", "0", "fields", "f"]
            #expect(written.json.value(at: place) == answer, "\(written.text)")
            let read = try await relay.post("records/lookup", #"{"records":["n"]}"#)
            #expect(read.json.value(at: place) == answer, "\(read.text)")
            // A client sends back what it has read.
            let again = try await Self.write(answer.text, to: relay)
            #expect(again.json.value(at: place) == answer, "\(again.text)")
        }
    }

    @Test(arguments: [
        (#"{"recordName":"r","action":"BOGUS"}"#, "f.value.action"),
        (#"{"recordName":"r","action":5}"#, "f.value.action"),
        (#"[{"recordName":"r"},{"recordName":"s","action":"BOGUS"}]"#, "f.value[1].action"),
        (#"{"latitude":1,"longitude":2,"altitude":{"x":1}}"#, "f.value.altitude"),
        (#"{"fileChecksum":5,"size":3}"#, "f.value.fileChecksum"),
        (#"{"fileChecksum":"c","size":"big"}"#, "f.value.size"),
    ])
    func `a form that no client expects is refused with its place`(
        value: String, place: String
    ) async throws {
        try await TestRelay.with { relay in
            let answer = try await Self.write(#"{"value":\#(value)}"#, to: relay)
            #expect(
                answer.json.value(at: ["records", "0", "serverErrorCode"]) == "BAD_REQUEST",
                "\(answer.text)")
            #expect(answer.text.contains("record.fields.\(place): "), "\(answer.text)")
        }
    }

    @Test func `an unknown type is refused at its place`() async throws {
        try await TestRelay.with { relay in
            let answer = try await Self.write(#"{"value":"a","type":"BOGUS"}"#, to: relay)
            #expect(answer.text.contains("record.fields.f.type: "), "\(answer.text)")
        }
    }
}
