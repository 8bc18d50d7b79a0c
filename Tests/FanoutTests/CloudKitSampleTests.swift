import Fanout
import RelayModel
import RelayTestKit
import Storage
import Testing

/// Pushes have the shapes that were seen from CloudKit: the same dictionaries, key for key, with
/// the names of the samples.
///
/// `docs/cloudkit-compatibility-notifications.md` has the table.
@Suite struct CloudKitSampleTests {
    /// A sample of a push, and the values that make ours.
    struct Sample: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let container: String
        let user: String
        let nid: String
        var database = DatabaseScope.private
        var scope: SubscriptionScope?
        var zone = ZoneID.defaultName
        let record: String
        let subscription: String
        var fields: RecordFields = [:]
        var info = NotificationInfo()
        var badge: Int64?
        var gateway = GatewayKind.apns
        let aps: JSONValue
        let ck: JSONValue
    }

    private static func background() -> NotificationInfo {
        var info = NotificationInfo()
        info.shouldSendContentAvailable = true
        return info
    }

    private static func visible() -> NotificationInfo {
        var info = NotificationInfo()
        info.alertBody = "New Chat"
        info.shouldBadge = true
        info.soundName = "default"
        return info
    }

    private static func withFields() -> NotificationInfo {
        var info = background()
        info.desiredKeys = ["title", "body"]
        return info
    }

    static let samples = [
        Sample(
            testDescription: "a silent query push in the public database",
            container: "iCloud.com.ChristianPrivitelli.ProjectSF",
            user: "_ca83d0962e8569057e2d4bece6c0a335",
            nid: "943172cd-822f-4890-8a2b-b24bb2a15527", database: .public,
            record: "E3FB89A0-C59C-4825-BF3D-93BFADEC7626",
            subscription: "950997CC-0D04-408D-9EA9-B47047567919", info: background(),
            aps: ["content-available": 1],
            ck: [
                "ce": 2, "cid": "iCloud.com.ChristianPrivitelli.ProjectSF",
                "ckuserid": "_ca83d0962e8569057e2d4bece6c0a335",
                "nid": "943172cd-822f-4890-8a2b-b24bb2a15527",
                "qry": [
                    "dbs": 2, "fo": 1, "rid": "E3FB89A0-C59C-4825-BF3D-93BFADEC7626",
                    "sid": "950997CC-0D04-408D-9EA9-B47047567919", "zid": "_defaultZone",
                    "zoid": "_defaultOwner",
                ],
            ]),
        Sample(
            testDescription: "one with fields", container: "iCloud.meadowvaleApp",
            user: "_b5cec76afbce9515866a8b7e7a08482a",
            nid: "19afdb06-72cc-4286-85ee-b6b837353928", database: .public, record: "93B69669",
            subscription: "0FE54158",
            fields: [
                "title": .string("November 28 (3)"), "body": .string("Testing 123"),
                "other": .integer(1),
            ], info: withFields(), aps: ["content-available": 1],
            ck: [
                "ckuserid": "_b5cec76afbce9515866a8b7e7a08482a", "ce": 2,
                "nid": "19afdb06-72cc-4286-85ee-b6b837353928", "cid": "iCloud.meadowvaleApp",
                "qry": [
                    "dbs": 2, "zid": "_defaultZone", "zoid": "_defaultOwner", "rid": "93B69669",
                    "sid": "0FE54158", "fo": 1,
                    "af": ["title": "November 28 (3)", "body": "Testing 123"],
                ],
            ]),
        familyKit(.apns, alert: "New Chat"),
        familyKit(.courier, alert: ["body": "New Chat"]),
        Sample(
            testDescription: "a database push of the private database",
            container: "iCloud.com.apple.example.CoreDataCloudKitDemo", user: "_2437",
            nid: "9ba3bb0a-0000-4000-8000-000000000000", scope: .database(recordType: nil),
            zone: "com.apple.coredata.cloudkit.zone", record: "r",
            subscription: "com.apple.coredata.cloudkit.private.subscription", info: background(),
            aps: ["content-available": 1],
            ck: [
                "ce": 2, "cid": "iCloud.com.apple.example.CoreDataCloudKitDemo",
                "ckuserid": "_2437",
                "met": [
                    "dbs": 1, "sid": "com.apple.coredata.cloudkit.private.subscription",
                    "zid": "com.apple.coredata.cloudkit.zone", "zoid": "_2437",
                ], "nid": "9ba3bb0a-0000-4000-8000-000000000000",
            ]),
        Sample(
            testDescription: "a zone push of the private database",
            container: "iCloud.com.example.Art", user: "_50125824373cb9a38c4142e6c601eb14",
            nid: "66a1bfd5-0000-4000-8000-000000000000",
            scope: .zone(ZoneID(zoneName: "Studio") ?? .default, recordType: nil), zone: "Studio",
            record: "r", subscription: "studio", info: background(),
            aps: ["content-available": 1],
            ck: [
                "ce": 2, "cid": "iCloud.com.example.Art",
                "ckuserid": "_50125824373cb9a38c4142e6c601eb14",
                "nid": "66a1bfd5-0000-4000-8000-000000000000",
                "fet": [
                    "dbs": 1, "sid": "studio", "zid": "Studio",
                    "zoid": "_50125824373cb9a38c4142e6c601eb14",
                ],
            ]),
    ]

    /// A visible push.
    ///
    /// By APNs its alert is a bare string. By the courier it is a dictionary, because CloudKit JS
    /// reads nothing else.
    private static func familyKit(_ gateway: GatewayKind, alert: JSONValue) -> Sample {
        Sample(
            testDescription: "a visible push of the private database by \(gateway.rawValue)",
            container: "iCloud.com.jumptack.FamilyKit", user: "_50125824373cb9a38c4142e6c601eb14",
            nid: "66a1bfd5-0000-4000-8000-000000000000", record: "C8FA4AC1",
            subscription: "AC91174C", info: visible(), badge: 180, gateway: gateway,
            aps: ["alert": alert, "badge": 180, "sound": "default"],
            ck: [
                "ce": 2, "cid": "iCloud.com.jumptack.FamilyKit",
                "ckuserid": "_50125824373cb9a38c4142e6c601eb14",
                "nid": "66a1bfd5-0000-4000-8000-000000000000",
                "qry": [
                    "dbs": 1, "fo": 1, "rid": "C8FA4AC1", "sid": "AC91174C", "zid": "_defaultZone",
                    "zoid": "_50125824373cb9a38c4142e6c601eb14",
                ],
            ])
    }

    private static func push(_ sample: Sample) throws -> PushNotification {
        let key = ContainerKey(
            container: Fixtures.identifier(sample.container), environment: .development)
        let user: UserID = Fixtures.identifier(sample.user)
        var subscription = Fixtures.subscription(
            sample.subscription, of: sample.user, in: key)
        subscription.database = sample.database
        subscription.notificationInfo = sample.info
        if let scope = sample.scope { subscription.scope = scope }
        var change = Fixtures.change(fields: sample.fields)
        change.database = sample.database
        if sample.database == .private { change.owner = user }
        change.recordID = RecordID(
            recordName: Fixtures.identifier(sample.record),
            zoneID: try #require(ZoneID(zoneName: sample.zone)))
        return NotificationComposer(
            settings: ContainerSettings(key: key, topics: ["com.example.Art"]), change: change,
            position: LogPosition(7), appendedAt: Fixtures.moment
        ).notification(
            by: subscription, notificationID: try #require(UUIDBytes(sample.nid)), topic: nil,
            badge: sample.badge, gateway: sample.gateway)
    }

    @Test(arguments: samples) func `a push has the shape of the sample:`(_ sample: Sample) throws {
        let push = try Self.push(sample)
        let payload = object(try JSONValue(parsing: push.payload))
        #expect(payload["aps"] == sample.aps)
        #expect(payload["ck"] == sample.ck)
        #expect(payload.members.map(\.name) == ["aps", "ck", "belfry"])
        let isBackground = sample.aps == ["content-available": 1]
        #expect(push.priority == (isBackground ? 5 : 10))
        #expect(push.pushType == (isBackground ? .background : .alert))
    }

    @Test(arguments: [GatewayKind.apns, .courier])
    func `parts that do not fit are left out in the same order for APNs and the courier`(
        gateway: GatewayKind
    ) throws {
        var sample = try #require(Self.samples.first { $0.gateway == gateway })
        sample.info.desiredKeys = ["long"]
        sample.fields = ["long": .string(String(repeating: "x", count: 5000))]
        let push = try Self.push(sample)
        #expect(push.payload.count <= Limits.maximumPayloadBytes)
        let ck = object(object(try JSONValue(parsing: push.payload))["ck"])
        #expect(ck["p"] == 1)
        #expect(object(ck["qry"])["af"] == nil)
        #expect(object(ck["qry"])["rid"] == .string(sample.record))
    }

    @Test func `the inbox keeps the whole payload`() {
        var composition = Composition { info in
            info.alertBody = "New"
            info.desiredKeys = ["long"]
        }
        let long = String(repeating: "x", count: 5000)
        composition.change = Fixtures.change(fields: ["long": .string(long)])
        let payload = NotificationComposer(
            settings: Composition.settings, change: composition.change, position: LogPosition(7),
            appendedAt: Fixtures.moment
        ).inboxPayload(
            by: composition.subscription, notificationID: Composition.notificationID)
        let text = String(decoding: payload, as: UTF8.self)
        #expect(text.contains(long))
        #expect(text.contains(#""alert":{"body":"New"}"#))
        #expect(!text.contains(#""p":1"#))
    }
}
