import Fanout
import RelayModel
import RelayTestKit
import Storage
import Testing

/// The payload of a push, compared with CloudKit's documented form.
@Suite struct PayloadTests {
    private static let start = #"{"aps":{"content-available":1},"ck":{"ce":2,"#
    private static let who =
        #""cid":"iCloud.com.example.Art","ckuserid":"alice","#
        + #""nid":"00000000-0000-0001-0000-000000000002","#
    private static let end = #"},"belfry":{"seq":"7"}}"#

    @Test(arguments: [
        (ChangeOperation.create, 1), (.update, 2), (.delete, 3),
    ])
    func `a query notification names the record and the reason`(
        operation: ChangeOperation, reason: Int
    ) {
        var composition = Composition()
        composition.change = Fixtures.change(operation)
        #expect(
            composition.text == Self.start + Self.who
                + #""qry":{"fo":\#(reason),"rid":"a1","dbs":2,"sid":"s1","zid":"_defaultZone","#
                + #""zoid":"_defaultOwner"}"# + Self.end)
    }

    @Test func `a zone notification names the zone and nothing of the record`() throws {
        var composition = Composition()
        let owner: UserID = Fixtures.identifier("alice")
        let zone = try #require(ZoneID(zoneName: "Studio"))
        composition.subscription.scope = .zone(zone, recordType: nil)
        composition.subscription.database = .private
        composition.change.database = .private
        composition.change.owner = owner
        composition.change.recordID = RecordID(
            recordName: Fixtures.identifier("a1"), zoneID: zone)
        #expect(
            composition.text == Self.start + Self.who
                + #""fet":{"dbs":1,"sid":"s1","zid":"Studio","zoid":"alice"}"# + Self.end)
    }

    @Test func `a database notification of a shared zone names the zone's owner`() throws {
        var composition = Composition()
        let zone = try #require(
            ZoneID(zoneName: "Studio", ownerRecordName: Fixtures.identifier("bob")))
        composition.subscription.scope = .database(recordType: nil)
        composition.change.database = .shared
        composition.change.owner = Fixtures.identifier("alice")
        composition.change.recordID = RecordID(
            recordName: Fixtures.identifier("a1"), zoneID: zone)
        #expect(
            composition.text == Self.start + Self.who
                + #""met":{"dbs":3,"sid":"s1","zid":"Studio","zoid":"bob"}"# + Self.end)
    }

    @Test func `a payload of production says so`() throws {
        var settings = Composition.settings
        settings.key = ContainerKey(
            container: settings.key.container, environment: .production)
        let push = NotificationComposer(
            settings: settings, change: Fixtures.change(), position: LogPosition(7),
            appendedAt: Fixtures.moment
        ).notification(
            by: Fixtures.subscription("s1"), notificationID: Composition.notificationID,
            topic: nil, badge: nil)
        let payload = object(try JSONValue(parsing: push.payload))
        #expect(object(payload["ck"])["ce"] == 1)
    }

    // MARK: aps

    @Test func `every key of a notification info has its place`() throws {
        var composition = Composition { info in
            info.alertLocalizationKey = "NEW_ART"
            info.alertLocalizationArgs = ["title", "year"]
            info.titleLocalizationKey = "TITLE"
            info.titleLocalizationArgs = ["artist"]
            info.subtitleLocalizationKey = "SUBTITLE"
            info.subtitleLocalizationArgs = ["missing"]
            info.alertActionLocalizationKey = "OPEN"
            info.alertLaunchImage = "launch.png"
            info.soundName = "default"
            info.shouldBadge = true
            info.shouldSendContentAvailable = true
            info.shouldSendMutableContent = true
            info.category = "art"
        }
        composition.badge = 180
        composition.change = Fixtures.change(fields: [
            "title": .string("Water Lilies"), "year": .integer(1907), "artist": .string("Monet"),
        ])
        let expected: JSONValue = [
            "alert": [
                "loc-key": "NEW_ART", "loc-args": ["Water Lilies", "1907"],
                "title-loc-key": "TITLE", "title-loc-args": ["Monet"],
                "subtitle-loc-key": "SUBTITLE", "subtitle-loc-args": [""],
                "action-loc-key": "OPEN", "launch-image": "launch.png",
            ],
            "badge": 180, "sound": "default", "category": "art", "content-available": 1,
            "mutable-content": 1,
        ]
        #expect(try composition.aps == expected)
    }

    @Test func `a body alone is written as a bare string`() throws {
        let composition = Composition { $0.alertBody = "New \"Chat\"\n" }
        #expect(try composition.aps == ["alert": "New \"Chat\"\n"])
    }

    @Test func `texts without keys are written as an object`() throws {
        let composition = Composition { info in
            info.alertBody = "body"
            info.title = "title"
            info.subtitle = "subtitle"
        }
        #expect(
            try composition.aps
                == ["alert": ["body": "body", "title": "title", "subtitle": "subtitle"]])
    }

    @Test func `keys override texts, and arguments without a key are left out`() throws {
        let composition = Composition { info in
            info.alertBody = "body"
            info.alertLocalizationKey = "KEY"
            info.title = "title"
            info.titleLocalizationArgs = ["title"]
        }
        #expect(try composition.aps == ["alert": ["loc-key": "KEY", "title": "title"]])
    }

    @Test func `a background push has no parts that only decorate an alert`() throws {
        let composition = Composition { info in
            info.alertLaunchImage = "launch.png"
            info.alertActionLocalizationKey = "OPEN"
        }
        #expect(try composition.aps == ["content-available": 1])
        #expect(composition.push.pushType == .background)
    }

    @Test(arguments: [
        (FieldValue.string("text"), "text"), (.integer(-7), "-7"), (.double(2.5), "2.5"),
        (.double(1907), "1907"), (.bool(true), "1"), (.bool(false), "0"), (.null, ""),
        (.timestamp(Timestamp(seconds: 0)), "1970-01-01T00:00:00Z"),
        (.uuid(UUIDBytes(high: 0, low: 1)), "00000000-0000-0000-0000-000000000001"),
        (.list([.integer(1)]), ""), (.bytes([1]), ""),
        (.reference(RecordReference(RecordID(recordName: Fixtures.identifier("monet")))), "monet"),
    ])
    func `an argument is written as people write it`(value: FieldValue, text: String) throws {
        var composition = Composition { info in
            info.alertLocalizationKey = "KEY"
            info.alertLocalizationArgs = ["field"]
        }
        composition.change = Fixtures.change(fields: ["field": value])
        let alert = object(object(try composition.aps)["alert"])
        #expect(alert["loc-args"] == [.string(text)])
    }

    @Test func `arguments of a deletion come from the record as it was`() throws {
        var composition = Composition { info in
            info.alertLocalizationKey = "KEY"
            info.alertLocalizationArgs = ["title"]
        }
        composition.change = Fixtures.change(.delete, fields: ["title": .string("Water Lilies")])
        let alert = object(object(try composition.aps)["alert"])
        #expect(alert["loc-args"] == ["Water Lilies"])
    }

    // MARK: af

    @Test(
        arguments: [
            (FieldValue.string("text"), JSONValue.string("text")), (.integer(7), .integer(7)),
            (.double(2.5), .number(2.5)), (.bool(true), 1), (.bool(false), 0),
            (.timestamp(Timestamp(milliseconds: 1_700_000_000_123)), 1_700_000_000_123),
            (.bytes([1, 2, 3]), "AQID"),
            (
                .reference(RecordReference(RecordID(recordName: Fixtures.identifier("monet")))),
                ["recordName": "monet"]
            ),
            (
                Location(latitude: 48.5, longitude: 2.25).map(FieldValue.location) ?? .null,
                ["latitude": .number(48.5), "longitude": .number(2.25)]
            ),
            (.uuid(UUIDBytes(high: 0, low: 1)), "00000000-0000-0000-0000-000000000001"),
            (.objectID([0xAB, 0xCD]), "abcd"), (.list([.integer(1), .null]), [1, .null]),
            (.set([.string("b"), .string("a")]), ["a", "b"]),
            (.map(["b": .integer(2), "a": .bool(true)]), ["a": 1, "b": 2]),
        ] as [(FieldValue, JSONValue)])
    func `a desired key is sent as its raw value`(value: FieldValue, raw: JSONValue) throws {
        var composition = Composition { $0.desiredKeys = ["field", "missing", "nothing"] }
        composition.change = Fixtures.change(
            .update, fields: ["field": value, "nothing": .null, "other": .integer(1)])
        let query = object(object(try composition.payload["ck"])["qry"])
        #expect(query["af"] == ["field": raw])
    }

    @Test(arguments: [FieldValue.null, .double(.nan), .double(.infinity)])
    func `a desired key without a value is left out`(value: FieldValue) throws {
        var composition = Composition { $0.desiredKeys = ["field"] }
        composition.change = Fixtures.change(fields: ["field": value])
        let query = object(object(try composition.payload["ck"])["qry"])
        #expect(query["af"] == nil)
    }

    @Test func `a deletion has no values`() throws {
        var composition = Composition { $0.desiredKeys = ["title"] }
        composition.change = Fixtures.change(.delete, fields: ["title": .string("Water Lilies")])
        let query = object(object(try composition.payload["ck"])["qry"])
        #expect(query["af"] == nil)
    }

    // MARK: Headers

    @Test func `a push that shows something is an urgent alert, and any other is not`() {
        let visible = Composition { $0.soundName = "default" }.push
        let silent = Composition().push
        #expect((visible.pushType, visible.priority) == (.alert, 10))
        #expect((silent.pushType, silent.priority) == (.background, 5))
        let gentle = Composition { info in
            info.alertBody = "body"
            info.priority = 1
        }.push
        #expect(gentle.priority == 1)
    }

    @Test func `a push has its collapse ID, topic and expiration`() {
        var composition = Composition { info in
            info.collapseIDKey = "art"
            info.expirationSeconds = 60
        }
        #expect(composition.push.collapseID == "art")
        #expect(composition.push.expiration == Fixtures.moment.advanced(by: .seconds(60)))
        #expect(composition.push.topic == "com.example.Art")
        composition.topic = "com.example.Art.watch"
        #expect(composition.push.topic == "com.example.Art.watch")
        let usual = Fixtures.moment.advanced(by: .seconds(30 * 86_400))
        #expect(Composition().push.expiration == usual)
    }

    @Test(
        arguments: [
            (.string("room-1"), "room-1"), (.integer(7), "7"), (.bool(true), "1"),
            (.null, nil), (.string(""), nil), (.list([.integer(1)]), nil),
        ] as [(FieldValue, String?)])
    func `a collapse ID is the value of the field of that name`(
        value: FieldValue, sent: String?
    ) {
        var composition = Composition { $0.collapseIDKey = "room" }
        composition.change.after?.fields["room"] = value
        #expect(composition.push.collapseID == sent)
    }

    @Test(arguments: [String(repeating: "x", count: 65), "a\nb", " a", "a\u{200B}"])
    func `a value that no header can hold gets a collapse ID of its own`(text: String) {
        func collapseID(_ text: String) -> String? {
            var composition = Composition { $0.collapseIDKey = "room" }
            composition.change.after?.fields["room"] = .string(text)
            return composition.push.collapseID
        }
        let sent = collapseID(text)
        #expect(sent?.utf8.count == 32 && sent?.isHeaderText(upTo: 64) == true)
        #expect(collapseID(text) == sent && collapseID(text + "y") != sent)
    }
}
