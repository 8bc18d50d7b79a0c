import RelayModel
import RelayTestKit
import Testing

@testable import Fanout

/// The parts that are left out of a payload that is too long, and their order.
@Suite struct PruningTests {
    /// Returns a composition with every part, whose payload has `count` bytes by the length of its
    /// body.
    private func composition(of count: Int) -> Composition {
        var composition = Composition { info in
            info.title = "title"
            info.subtitle = "subtitle"
            info.alertBody = "x"
            info.alertActionLocalizationKey = "OPEN"
            info.alertLaunchImage = "launch.png"
            info.soundName = "default"
            info.category = "art"
            info.desiredKeys = ["title"]
        }
        composition.change = Fixtures.change(fields: ["title": .string("Water Lilies")])
        let rest = composition.push.payload.count - 1
        composition.subscription.notificationInfo.alertBody =
            String(repeating: "x", count: count - rest)
        return composition
    }

    @Test func `a payload at the limit stays whole`() throws {
        let composition = composition(of: Limits.maximumPayloadBytes)
        let payload = try composition.payload
        #expect(composition.push.payload.count == Limits.maximumPayloadBytes)
        #expect(payload["belfry"] == ["seq": "7"])
        #expect(object(payload["ck"])["p"] == nil)
    }

    @Test func `a payload one byte too long loses only our own number, unmarked`() throws {
        let composition = composition(of: Limits.maximumPayloadBytes + 1)
        let payload = try composition.payload
        #expect(payload["belfry"] == nil)
        #expect(object(payload["ck"])["p"] == nil)
        #expect(object(object(payload["ck"])["qry"])["af"] == ["title": "Water Lilies"])
    }

    /// The paths of the parts in the order in which they are left out.
    private static let order = [
        "ck.qry.af", "ck.qry.rid", "ck.qry.fo", "ck.qry.sid", "aps.sound",
        "aps.alert.launch-image", "aps.alert.action-loc-key", "aps.alert.subtitle",
        "aps.alert.body", "aps.alert.title",
    ]

    private func has(_ path: String, _ payload: JSONObject) -> Bool {
        var value: JSONValue? = .object(payload)
        for name in path.split(separator: ".") { value = object(value)[String(name)] }
        return value != nil
    }

    @Test func `parts are left out one after another, and the flag p is set`() throws {
        var missing: [Int] = []
        for excess in stride(from: 20, through: 3600, by: 7) {
            let payload = try composition(of: Limits.maximumPayloadBytes + excess).payload
            let present = Self.order.map { has($0, payload) }
            let gone = present.prefix { !$0 }.count
            // No part is left out before one that is earlier in the order.
            #expect(present.dropFirst(gone).allSatisfy { $0 })
            #expect((object(payload["ck"])["p"] == 1) == (gone > 0))
            #expect(object(payload["ck"])["nid"] != nil)
            #expect(object(payload["ck"])["cid"] != nil)
            #expect(payload["belfry"] == nil)
            missing.append(gone)
        }
        #expect(missing == missing.sorted())
        #expect(Set(missing).isSuperset(of: [1, 2, 3, 4, 5, 6, 7, 8, 9]))
    }

    @Test func `the parts that are never left out always fit`() {
        let name = String(repeating: "\"", count: 255)
        var payload = PushPayload(
            alert: ["loc-key": .string(String(repeating: "k", count: 2048))], badge: .max,
            category: String(repeating: "c", count: 2048), isContentAvailable: true,
            isMutable: true,
            envelope: [
                "ce": 1, "cid": .string(name), "ckuserid": .string(name),
                "nid": .string(UUIDBytes(high: 1, low: 2).description),
            ], bodyName: "qry", body: ["rid": .string(String(repeating: "\"", count: 1024))])
        payload.sequence = LogPosition(.max)
        payload.body["af"] = .string(String(repeating: "\u{1}", count: 100_000))
        let text = payload.fitted()
        #expect(text.count <= Limits.maximumPayloadBytes)
    }

    @Test func `a long argument is cut, and nothing else is left out`() throws {
        var composition = Composition { info in
            info.alertLocalizationKey = "KEY"
            info.alertLocalizationArgs = ["long", "short"]
        }
        composition.change = Fixtures.change(
            fields: [
                "long": .string(String(repeating: "ü", count: 5000)), "short": .string("s"),
            ])
        let cut = JSONValue.string(String(repeating: "ü", count: 100))
        #expect(try composition.aps == ["alert": ["loc-key": "KEY", "loc-args": [cut, "s"]]])
        let ck = object(try composition.payload["ck"])
        #expect(ck["p"] == 1)
        #expect(object(ck["qry"])["rid"] != nil)
    }

    @Test func `an argument that is one endless character is cut as well`() throws {
        var composition = Composition { info in
            info.alertLocalizationKey = "KEY"
            info.alertLocalizationArgs = ["long"]
        }
        let joined = String(repeating: "\u{1F469}\u{200D}", count: 1000)
        #expect(joined.count == 1)
        composition.change = Fixtures.change(fields: ["long": .string(joined)])
        let kept = JSONValue.string(String(repeating: "\u{1F469}\u{200D}", count: 200))
        #expect(try composition.aps == ["alert": ["loc-key": "KEY", "loc-args": [kept]]])
        #expect(object(try composition.payload["ck"])["qry"] != nil)
    }

    @Test(arguments: [["text"], ["list"], ["map"], ["text", "list", "map"]])
    func `huge values are cut to the same payload as slightly too long ones`(
        names: [String]
    ) throws {
        func composition(_ length: Int) -> Composition {
            var composition = Composition { info in
                info.alertLocalizationKey = "KEY"
                info.alertLocalizationArgs = names
                info.desiredKeys = names
            }
            let ones = Array(repeating: FieldValue.integer(1), count: length)
            composition.change = Fixtures.change(
                fields: [
                    "text": .string(String(repeating: "x", count: length)), "list": .list(ones),
                    "map": .map(["in": .list(ones)]),
                ])
            return composition
        }
        let (long, endless) = (composition(5000), composition(300_000))
        #expect(try long.payload == endless.payload)
        #expect(object(try endless.payload["ck"])["p"] == 1)
    }

    @Test func `localised texts lose their arguments before their keys`() throws {
        let names = (0..<16).map { "f\($0)" }
        var composition = Composition { info in
            info.alertLocalizationKey = "KEY"
            info.alertLocalizationArgs = names
        }
        let long = FieldValue.string(String(repeating: "\u{1}", count: 100))
        composition.change = Fixtures.change(
            fields: Dictionary(uniqueKeysWithValues: names.map { ($0, long) }))
        #expect(try composition.aps == ["alert": ["loc-key": "KEY"]])
    }

    @Test(arguments: ["short", "", String(repeating: "x", count: 100_000)])
    func `a computed collapse ID equals that of the field`(value: String) {
        var composition = Composition { info in
            info.alertBody = "New"
            info.collapseIDKey = "text"
        }
        composition.change = Fixtures.change(fields: ["text": .string(value)])
        let composer = NotificationComposer(
            settings: Composition.settings, change: composition.change, position: LogPosition(7),
            appendedAt: Fixtures.moment)
        var known: [String: String?] = [:]
        for _ in 0..<2 {
            let push = composer.notification(
                by: composition.subscription, notificationID: Composition.notificationID,
                topic: nil, badge: nil, gateway: .apns, knowing: &known)
            #expect(push.collapseID == composition.push.collapseID)
        }
        #expect(known.count == 1)
    }

    // MARK: Something always shows

    private static let alphabet: [Character] = ["x", "\"", "\u{1}", "ü", "\n", "\u{1F514}", "/"]

    private func text(
        _ generator: inout SeededGenerator, upTo most: Int = Limits.maximumNotificationTextBytes
    ) -> String? {
        guard generator.chance(60) else { return nil }
        let letter = Self.alphabet[Int.random(in: 0..<Self.alphabet.count, using: &generator)]
        let bytes = String(letter).utf8.count
        let count = Int.random(in: 1...most / bytes, using: &generator)
        return String(repeating: letter, count: generator.chance(50) ? most / bytes : count)
    }

    private func info(_ generator: inout SeededGenerator) -> NotificationInfo {
        var info = NotificationInfo()
        info.alertBody = text(&generator)
        info.title = text(&generator)
        info.subtitle = text(&generator)
        info.alertLocalizationKey = generator.chance(30) ? text(&generator) : nil
        info.titleLocalizationKey = generator.chance(30) ? text(&generator) : nil
        info.subtitleLocalizationKey = generator.chance(30) ? text(&generator) : nil
        info.alertLocalizationArgs = ["long", "long"]
        info.titleLocalizationArgs = ["long"]
        info.subtitleLocalizationArgs = Array(repeating: "long", count: 16)
        info.soundName = text(&generator)
        info.category = text(&generator)
        info.alertLaunchImage = text(&generator)
        info.alertActionLocalizationKey = text(&generator)
        info.shouldBadge = generator.chance(20)
        info.desiredKeys = ["long"]
        return info
    }

    @Test(arguments: Seeds.all)
    func `every payload fits, and an alert always shows something`(
        seed: UInt64
    ) throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<400 {
            let info = info(&generator)
            var composition = Composition { $0 = info }
            composition.badge = info.shouldBadge ? 5 : nil
            composition.change = Fixtures.change(
                // The escaped value is longer than a payload.
                fields: ["long": .string(String(repeating: "\u{1}", count: 700))])
            let push = composition.push
            #expect(push.payload.count <= Limits.maximumPayloadBytes)
            guard push.pushType == .alert else { continue }
            let aps = object(try object(JSONValue(parsing: push.payload))["aps"])
            guard info.hasAlert else {
                #expect(aps["sound"] != nil || aps["badge"] != nil)
                continue
            }
            let shown: [String] =
                switch aps["alert"] {
                case .string(let text)?: [text]
                case .object(let alert)?:
                    alert.members.compactMap { member in
                        let isText = ["body", "title", "subtitle"].contains(member.name)
                        guard isText || member.name.hasSuffix("loc-key"),
                            member.name != "action-loc-key", case .string(let text) = member.value
                        else { return nil }
                        return text
                    }
                default: []
                }
            #expect(shown.contains { !$0.isEmpty }, "\(aps)")
            // A key that may be saved is never cut.
            if info.unsendable == nil, let key = info.alertLocalizationKey {
                #expect(shown.contains(key))
            }
        }
    }

    @Test(arguments: ["title", "subtitle"])
    func `a text of blanks does not stay in the place of one that shows something`(
        blank: String
    ) throws {
        let composition = Composition { info in
            info.alertBody = String(repeating: "\u{1}", count: 2040)
            if blank == "title" { info.title = " " } else { info.subtitle = "\u{3000}" }
        }
        #expect(composition.push.payload.count <= Limits.maximumPayloadBytes)
        // An alert that consists of a text alone is a bare string.
        guard case .string(let shown)? = object(try composition.aps)["alert"] else {
            Issue.record("no text")
            return
        }
        #expect(shown.hasPrefix("\u{1}"))
    }

    @Test func `a sound stays beside a text of blanks`() throws {
        let composition = Composition { info in
            info.title = " "
            info.soundName = String(repeating: "\u{1}", count: 2000)
        }
        #expect(try object(composition.aps)["sound"] == "default")
    }

    @Test func `texts of blanks alone are left out until one is left`() throws {
        let composition = Composition { info in
            info.alertBody = String(repeating: " ", count: 2000)
            info.title = String(repeating: " ", count: 2000)
            info.subtitle = String(repeating: " ", count: 2000)
        }
        #expect(composition.push.payload.count <= Limits.maximumPayloadBytes)
        #expect(object(try composition.aps)["alert"] != nil)
    }

    @Test func `a text alone is cut to what fits`() throws {
        let composition = Composition { info in
            info.alertBody = String(repeating: "\u{1}", count: 2048)
        }
        #expect(composition.push.payload.count <= Limits.maximumPayloadBytes)
        #expect(composition.push.payload.count > Limits.maximumPayloadBytes - 12)
        guard case .string(let text)? = object(try composition.aps)["alert"] else {
            Issue.record("no text")
            return
        }
        #expect(text.hasSuffix("\u{1}…"))
    }

    @Test func `a digest takes as much of a very long field as a push can hold`() throws {
        func together(_ length: Int) throws -> JSONValue {
            var composition = Composition { $0.alertBody = "New" }
            composition.change = Fixtures.change(
                fields: ["t": .string(String(repeating: "x", count: length))])
            composition.subscription.kindness.digest = try PushDigest(
                json: ["seconds": 60, "alertBody": .string(String(repeating: "{t}", count: 16))],
                path: "digest")
            let composer = NotificationComposer(
                settings: Composition.settings, change: composition.change,
                position: LogPosition(7), appendedAt: Fixtures.moment)
            let payload = composer.togetherPayload(
                by: composition.subscription, notificationID: Composition.notificationID,
                badge: nil, gateway: .apns)
            return try JSONValue(parsing: try #require(payload))
        }
        let (long, endless) = (try together(5000), try together(300_000))
        #expect(long == endless)
        guard case .string(let text)? = object(object(long)["aps"])["alert"] else {
            Issue.record("\(long.text)")
            return
        }
        #expect(text.hasPrefix("xxx") && text.hasSuffix("…"))
    }

    @Test func `a long field in a digest's text is cut, and nothing else is left out`() throws {
        var composition = Composition { info in
            info.title = "Art"
            info.alertBody = "New"
            info.desiredKeys = ["year"]
        }
        composition.change = Fixtures.change(
            fields: [
                "note": .string(String(repeating: "x", count: 100_000)), "year": .integer(1906),
            ])
        composition.subscription.kindness.digest = try PushDigest(
            json: ["seconds": 60, "alertBody": "{count} new, the newest {note} of {year}"],
            path: "digest")
        let composer = NotificationComposer(
            settings: Composition.settings, change: composition.change, position: LogPosition(7),
            appendedAt: Fixtures.moment)
        let together = try #require(
            composer.togetherPayload(
                by: composition.subscription, notificationID: Composition.notificationID,
                badge: nil, gateway: .apns))
        let payload = object(try JSONValue(parsing: together))
        let note = String(repeating: "x", count: Limits.cutArgumentCharacters)
        let body = "\(String(Delivery.countMark)) new, the newest \(note)… of 1906"
        #expect(object(payload["aps"])["alert"] == ["title": "Art", "body": .string(body)])
        #expect(object(payload["ck"])["p"] == 1)
        #expect(object(object(payload["ck"])["qry"])["rid"] == "a1")
    }

    /// One change may fill the texts of thousands of pushes with one grapheme of a megabyte.
    @Test(.timeLimit(.minutes(5))) func `an argument is cut without looking at the rest of it`() {
        let letter = String(repeating: "\u{1100}", count: 1_500_000)
        var scalars = 0
        for _ in 0..<200 { scalars += PushPayload.shortened(letter).unicodeScalars.count }
        #expect(scalars == 200 * 4 * Limits.cutArgumentCharacters)
        let flags = String(repeating: "\u{1F1E6}\u{1F1F9}", count: 150)
        #expect(PushPayload.shortened(flags).count == Limits.cutArgumentCharacters)
        #expect(PushPayload.shortened("short") == "short")
    }

    @Test(
        arguments: [
            ["seconds": 60, "alertBody": "{missing}"], ["seconds": 60, "alertBody": ""],
            ["seconds": 60, "title": "{missing}"], ["seconds": 60, "alertLocalizationKey": ""],
        ] as [JSONValue])
    func `a digest with an empty text uses the subscription's own`(digest: JSONValue) throws {
        var composition = Composition { info in
            info.title = "Art"
            info.alertBody = "New"
        }
        composition.subscription.kindness.digest = try PushDigest(json: digest, path: "digest")
        let composer = NotificationComposer(
            settings: Composition.settings, change: composition.change, position: LogPosition(7),
            appendedAt: Fixtures.moment)
        let together = try #require(
            composer.togetherPayload(
                by: composition.subscription, notificationID: Composition.notificationID,
                badge: nil, gateway: .apns))
        let alert = object(object(try JSONValue(parsing: together))["aps"])["alert"]
        #expect(alert == ["title": "Art", "body": "New"], "\(digest.text)")
    }

    @Test(
        arguments: [
            (" a", "a"), ("a ", "a"), ("   ", nil), ("a b", "a b"),
            (String(repeating: "x", count: 64), String(repeating: "x", count: 64)),
        ] as [(String, String?)])
    func `a saved collapse ID is sent without blanks at its ends`(
        saved: String, sent: String?
    ) {
        let composition = Composition { $0.collapseIDKey = saved }
        #expect(composition.push.collapseID == sent)
        #expect((composition.subscription.notificationInfo.unsendable == nil) == (saved == sent))
    }
}
