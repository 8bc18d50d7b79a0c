import RelayModel
import Testing

@Suite struct DateTextTests {
    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0, 0),
        ("1970-01-01", 0, 0),
        ("2023-11-14T22:13:20Z", 1_700_000_000, 0),
        ("2023-11-14 22:13:20.123456789+00", 1_700_000_000, 123_456_789),
        ("2023-11-15T03:43:20+05:30", 1_700_000_000, 0),
        ("2023-11-14T17:13:20-0500", 1_700_000_000, 0),
        ("2023-11-14t22:13z", 1_699_999_980, 0),
        ("2000-02-29", 951_782_400, 0),
        ("0001-01-01", -62_135_596_800, 0),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799, 999_000_000),
        ("2016-12-31T23:59:60Z", 1_483_228_800, 0),
        ("1969-12-31T23:59:59.5Z", -1, 500_000_000),
    ])
    func `dates are read as databases write them`(text: String, seconds: Int64, nanos: Int32) {
        #expect(Timestamp(iso8601: text) == Timestamp(seconds: seconds, nanoseconds: nanos))
    }

    @Test(arguments: [
        "", "2023", "2023-11", "2023-13-01", "2023-02-29", "1900-02-29", "2023-11-31", "0000-01-01",
        "2023-11-14T", "2023-11-14T24:00:00Z", "2023-11-14T22:60:00Z", "2023-11-14T22:13:61Z",
        "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20.1234567890Z", "2023-11-14T22:13:20+24:00",
        "2023-11-14T22:13:20+1", "2023-11-14T22:13:20Zx", "infinity", "-2023-11-14",
        "２０２３-11-14", " 2023-11-14",
    ])
    func `a text that is not a date gives nil`(text: String) {
        #expect(Timestamp(iso8601: text) == nil)
    }

    /// Minapp's clients always write seconds and an offset; a text without them is not a date.
    @Test(arguments: [
        ("2018-09-01T18:31:02.631000+08:00", 1_535_797_862, 631_000_000),
        ("2018-09-01 10:31:02Z", 1_535_797_862, 0), ("2018-09-01T18:31:02+0800", 1_535_797_862, 0),
        ("2018-09-01t10:31:02z", 1_535_797_862, 0), ("2018-09-01T18:31:02+08", 1_535_797_862, 0),
        ("2018-09-01T10:31:60Z", 1_535_797_920, 0),
    ])
    func `a complete date is read where one is required`(text: String, seconds: Int64, nanos: Int32)
    {
        let moment = Timestamp(iso8601: text, with: [.seconds, .offset])
        #expect(moment == Timestamp(seconds: seconds, nanoseconds: nanos))
    }

    @Test(arguments: [
        "2018-09-01", "2018-09-01T18:31Z", "2018-09-01T18:31:02", "2018-09-01T18:31:02.5",
        "2018-09-01T18:31+08:00", "2018-09-01T18:31:02+0:8", "2018-09-01T18:31:02+08:",
        "2018-09-01T18:31:02.1234567890Z",
    ])
    func `an incomplete date is refused where a complete one is required`(text: String) {
        #expect(Timestamp(iso8601: text, with: [.seconds, .offset]) == nil)
    }

    /// Expected values from `date -u -d @N`, and beyond its range from the proleptic Gregorian
    /// calendar.
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"), (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"), (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"), (4_107_456_000, "2100-02-28T00:00:00Z"),
            (-2_203_891_200, "1900-03-01T00:00:00Z"), (-2_203_977_600, "1900-02-28T00:00:00Z"),
            (-11_676_096_000, "1600-01-01T00:00:00Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
            (253_402_300_800, "+10000-01-01T00:00:00Z"), (-62_135_596_800, "0001-01-01T00:00:00Z"),
            (-62_135_596_801, "0000-12-31T23:59:59Z"), (-62_167_219_201, "-0001-12-31T23:59:59Z"),
        ] as [(Int64, String)])
    func `moments are written as ISO 8601`(seconds: Int64, text: String) {
        #expect(Timestamp(seconds: seconds).iso8601Seconds == text)
        // Fractions of a second are truncated, not rounded.
        let late = Timestamp(seconds: seconds, nanoseconds: 999_999_999)
        #expect(late.iso8601Seconds == text)
        #expect(late.iso8601 == text.dropLast() + ".999Z")
        #expect(Timestamp(seconds: seconds, nanoseconds: 7_999_999).iso8601.hasSuffix(".007Z"))
    }

    @Test func `the first and last moments are dates too`() {
        #expect(Timestamp.earliest.iso8601Seconds == "-292277022657-01-27T08:29:52Z")
        #expect(Timestamp.latest.iso8601Seconds == "+292277026596-12-04T15:30:07Z")
    }

    /// Converts each day of some five thousand years to a date and back.
    @Test func `days convert to dates and back`() {
        var last = CivilDate(daysSince1970: -900_000)
        for days in Int64(-899_999)...900_000 {
            let date = CivilDate(daysSince1970: days)
            let isNext =
                date.day == last.day + 1 && date.month == last.month && date.year == last.year
                || date.day == 1 && date.month == last.month + 1 && date.year == last.year
                || date.day == 1 && date.month == 1 && date.year == last.year + 1
            guard isNext, date.isInCalendar, date.daysSince1970 == days else {
                Issue.record("day \(days) is \(date) after \(last)")
                return
            }
            last = date
        }
    }

    @Test func `a day after the end of its month counts on`() {
        let beyond = CivilDate(year: 2023, month: 2, day: 31)
        #expect(!beyond.isInCalendar)
        #expect(beyond.daysSince1970 == CivilDate(year: 2023, month: 3, day: 3).daysSince1970)
        #expect(!CivilDate(year: 2023, month: 13, day: 1).isInCalendar)
    }
}
