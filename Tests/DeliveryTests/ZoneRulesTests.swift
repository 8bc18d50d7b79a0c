import Foundation
import RelayModel
import Testing

@testable import Delivery

/// Compares the zone rules with Foundation's, which share no code and have data of their own.
@Suite struct ZoneRulesTests {
    private static let names = [
        "Africa/Casablanca", "America/Argentina/Buenos_Aires", "America/New_York",
        "America/St_Johns", "America/Nuuk", "Antarctica/Troll", "Asia/Kathmandu", "Asia/Tokyo",
        "Australia/Lord_Howe", "Australia/Sydney", "Europe/Dublin", "Europe/London",
        "Europe/Zurich", "Pacific/Apia", "Pacific/Chatham", "UTC",
    ]

    @Test(arguments: names) func `zones agree with Foundation's`(name: String) throws {
        let zone = try #require(TimeZone(identifier: name))
        var clock = ZoneClock()
        var differences: [Date] = []
        // From 1972 to 2036 in steps of seventeen hours; the data may differ for far dates.
        for hours in stride(from: 17_520 as Int64, to: 579_000, by: 17) {
            let date = Date(timeIntervalSince1970: Double(hours * 3600))
            let found = clock.offset(of: name, at: Timestamp(seconds: hours * 3600))
            if found != Int64(zone.secondsFromGMT(for: date)) { differences.append(date) }
        }
        #expect(differences == [])
    }

    @Test func `the yearly rule continues where the list of changes ends`() throws {
        let rules: [(rule: String, moment: Int64, offset: Int64)] = [
            ("UTC0", 0, 0), ("<+0545>-5:45", 0, 20_700), ("JST-9", 0, 32_400),
            // 2026-03-29T01:00Z and 2026-10-25T01:00Z.
            ("CET-1CEST,M3.5.0,M10.5.0/3", 1_774_745_999, 3600),
            ("CET-1CEST,M3.5.0,M10.5.0/3", 1_774_746_000, 7200),
            ("CET-1CEST,M3.5.0,M10.5.0/3", 1_792_889_999, 7200),
            ("CET-1CEST,M3.5.0,M10.5.0/3", 1_792_890_000, 3600),
            // In the southern hemisphere summer time lasts over the end of the year; here it is
            // half an hour.
            ("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 1_767_225_600, 39_600),
            ("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 1_782_864_000, 37_800),
            // In Ireland the winter time counts as the alternative.
            ("IST-1GMT0,M10.5.0,M3.5.0/1", 1_782_864_000, 3600),
            ("IST-1GMT0,M10.5.0,M3.5.0/1", 1_767_225_600, 0),
            // Summer time all year (the example of RFC 9636), and transitions before the day
            // begins.
            ("XXX3EDT4,0/0,J365/23", 1_767_225_600, -14_400),
            ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1_774_745_999, -7200),
            ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1_774_746_000, -3600),
            ("AAA0BBB,J60,J300", 1_709_251_200, 0), ("AAA0BBB,J60,J300", 1_709_258_400, 3600),
            ("AAA0BBB,59,299", 1_709_258_400, 3600),
        ]
        for (text, moment, offset) in rules {
            let rule = try #require(YearlyRule(text), "\(text)")
            #expect(rule.offset(at: moment) == offset, "\(text) at \(moment)")
        }
    }

    @Test(arguments: [
        "", "A0", "CET", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0/3x", "<CET-1", "CET-1:60", "CET-1CEST,366,J1", "CET-200",
    ])
    func `a malformed rule is refused`(text: String) {
        #expect(YearlyRule(text) == nil)
    }

    @Test func `a truncated or altered file is refused or read without a crash`() throws {
        let path = "/usr/share/zoneinfo/Europe/Zurich"
        let bytes = Array(try #require(FileManager.default.contents(atPath: path)))
        let whole = try #require(ZoneRules(bytes))
        #expect(whole.offset(at: 1_774_746_000) == 7200)
        for count in 0..<bytes.count { #expect(ZoneRules(Array(bytes.prefix(count))) == nil) }
        for place in bytes.indices {
            var altered = bytes
            altered[place] ^= 0xFF
            _ = ZoneRules(altered)?.offset(at: 1_774_746_000)
        }
    }
}
