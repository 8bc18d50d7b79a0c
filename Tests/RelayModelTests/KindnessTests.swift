import RelayModel
import Testing

/// The settings that hold pushes back, as clients write them, and the ends of quiet hours.
@Suite struct KindnessTests {
    private static func read(_ json: JSONObject) throws -> SubscriptionKindness {
        try SubscriptionKindness(try JSONReader(.object(json), path: "subscription"))
    }

    @Test func `the settings read as they are written`() throws {
        let kindness = try Self.read([
            "paused": true, "urgent": true, "expiresAt": 1_900_000_000_500,
        ])
        #expect(kindness.isPaused && kindness.isUrgent)
        #expect(kindness.expiresAt == Timestamp(milliseconds: 1_900_000_000_500))
        let text = try Self.read(["expiresAt": "2030-03-17T17:46:40.500Z"])
        #expect(text.expiresAt == kindness.expiresAt)
        #expect(try Self.read([:]) == SubscriptionKindness())
        #expect(kindness.storedForm == ["paused": true, "urgent": true])
        #expect(SubscriptionKindness().storedForm == nil)
    }

    @Test func `throttle and digest read as they are written`() throws {
        let json: JSONObject = [
            "throttle": ["pushes": 3, "seconds": 60],
            "digest": [
                "seconds": 3600, "title": "Orders", "alertBody": "{count} of {{x}}, by {who}",
                "alertLocalizationKey": "ORDERS", "alertLocalizationArgs": ["{count}", "{who}"],
            ],
        ]
        let kindness = try Self.read(json)
        #expect(kindness.storedForm == json)
        #expect(kindness.isHolding)
        #expect(
            kindness.digest?.alertBody?.parts
                == [.count, .text(" of {x}, by "), .field("who")])
        #expect(try DigestTemplate("", path: "").parts == [])
        let full = String(repeating: "a {b} ", count: 16)
        #expect(try DigestTemplate(full, path: "").fields.count == 16)
    }

    @Test func `a brace counts even with combining marks after it`() throws {
        let parts = try DigestTemplate("{count}\u{FE0F}\u{20E3} by {who}\u{301}", path: "").parts
        #expect(
            parts == [.count, .text("\u{FE0F}\u{20E3} by "), .field("who"), .text("\u{301}")])
        let names = try DigestTemplate("{{\u{301}}} {\u{301}x}", path: "").parts
        #expect(names == [.text("{\u{301}} "), .field("\u{301}x")])
        #expect(throws: JSONContractError.self) { try DigestTemplate("}\u{301}", path: "") }
    }

    static let bad: [(JSONObject, String)] = [
        (
            ["throttle": ["pushes": 0, "seconds": 60]],
            "subscription.throttle.pushes: must be 1 to 100, found 0"
        ),
        (
            ["throttle": ["pushes": 1]],
            "subscription.throttle.seconds: is required"
        ),
        (
            ["digest": ["seconds": 604_801]],
            "subscription.digest.seconds: must be 1 to 604800, found 604801"
        ),
        (
            ["digest": ["seconds": 60, "alertBody": "new {count"]],
            "subscription.digest.alertBody: character 5: a brace that is not closed; write {{ for "
                + "the brace itself"
        ),
        (
            ["digest": ["seconds": 60, "title": "a } b"]],
            "subscription.digest.title: character 3: a closing brace without an opening one; write "
                + "}} for the brace itself"
        ),
        (
            ["digest": ["seconds": 60, "alertBody": "{}"]],
            "subscription.digest.alertBody: character 1: {count} or the name of a field in "
                + "braces is expected"
        ),
        (
            [
                "digest": [
                    "seconds": 60, "alertBody": .string(String(repeating: "{a}", count: 17)),
                ]
            ],
            "subscription.digest.alertBody: character 49: more than 16 places in braces"
        ),
        (
            ["digest": ["seconds": 60, "alertLocalizationArgs": ["x"]]],
            "subscription.digest.alertLocalizationArgs: requires alertLocalizationKey, whose text "
                + "it fills"
        ),
        (["paused": "yes"], "subscription.paused: a boolean is expected, found a string"),
        (
            ["expiresAt": "tomorrow"],
            "subscription.expiresAt: a moment is expected: milliseconds since 1970, or a text such "
                + "as \"2026-12-24T18:00:00Z\""
        ),
        (
            ["expiresAt": 9_000_000_000_000_000_000],
            "subscription.expiresAt: a moment is expected: milliseconds since 1970, or a text such "
                + "as \"2026-12-24T18:00:00Z\""
        ),
    ]

    @Test(arguments: bad) func `a malformed setting is refused with its path`(
        json: JSONObject, sentence: String
    ) {
        #expect { try Self.read(json) } throws: { "\($0)" == sentence }
    }

    // MARK: Quiet hours

    private static func hours(_ from: JSONValue, _ until: JSONValue) throws -> QuietHours {
        try QuietHours(
            json: ["timeZone": "Europe/Zurich", "from": from, "until": until], path: "quietHours")
    }

    static let badHours: [(JSONValue, String)] = [
        ("night", "quietHours: an object is expected, found a string"),
        (["timeZone": "UTC", "from": "22:00"], "quietHours.until: is required"),
        (["from": "22:00", "until": "07:00"], "quietHours.timeZone: is required"),
        (
            ["timeZone": "UTC", "from": "24:00", "until": "07:00"],
            "quietHours.from: a time from \"00:00\" to \"23:59\" is expected"
        ),
        (
            ["timeZone": "UTC", "from": "22:00", "until": "7:00"],
            "quietHours.until: a time from \"00:00\" to \"23:59\" is expected"
        ),
        (
            ["timeZone": "UTC", "from": "07:00", "until": "07:00"],
            "quietHours.until: must differ from \"from\"; to get no notifications at all, pause "
                + "the subscription"
        ),
        (
            ["timeZone": "UTC", "from": "22:00", "until": "07:00", "days": 1],
            "quietHours.days: unknown field; allowed are timeZone, from, until"
        ),
    ]

    @Test(arguments: badHours) func `malformed quiet hours are refused with their path`(
        json: JSONValue, sentence: String
    ) {
        #expect { try QuietHours(json: json, path: "quietHours") } throws: {
            "\($0)" == sentence
        }
    }

    @Test func `quiet hours read as they are written, and are stored with a device`() throws {
        var kindness = DeviceKindness()
        #expect(kindness.isEmpty && kindness.storedForm == nil)
        kindness.quietHours = try Self.hours("22:05", "07:00")
        #expect(
            kindness.quietHours?.json == [
                "timeZone": "Europe/Zurich", "from": "22:05", "until": "07:00",
            ])
        let form = try #require(kindness.storedForm)
        #expect(try DeviceKindness(storedForm: .object(form)) == kindness)
    }

    /// Returns the end of the hours at a moment, for a device whose clock is one hour ahead of
    /// UTC.
    private static func end(_ hours: QuietHours, at text: String) -> String? {
        Timestamp(iso8601: text).flatMap { hours.end(at: $0) { _ in 3600 } }?.iso8601Seconds
    }

    @Test func `quiet hours end with their last minute, also past midnight`() throws {
        let night = try Self.hours("22:00", "07:00")
        #expect(Self.end(night, at: "2026-11-24T20:59:59Z") == nil)
        #expect(Self.end(night, at: "2026-11-24T21:00:00Z") == "2026-11-25T06:00:00Z")
        #expect(Self.end(night, at: "2026-11-25T05:59:59.5Z") == "2026-11-25T06:00:00Z")
        #expect(Self.end(night, at: "2026-11-25T06:00:00Z") == nil)
        let noon = try Self.hours("12:00", "13:30")
        #expect(Self.end(noon, at: "2026-11-24T11:00:00Z") == "2026-11-24T12:30:00Z")
        #expect(Self.end(noon, at: "2026-11-24T12:30:00Z") == nil)
        let midnight = try Self.hours("00:00", "00:01")
        #expect(Self.end(midnight, at: "1969-12-31T23:00:30Z") == "1969-12-31T23:01:00Z")
    }
}
