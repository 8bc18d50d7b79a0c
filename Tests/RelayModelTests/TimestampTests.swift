import RelayModel
import Testing

@Suite struct TimestampTests {
    @Test(arguments: [
        (0, 0, 0), (1, 0, 1_000_000), (999, 0, 999_000_000), (1000, 1, 0), (-1, -1, 999_000_000),
        (-1000, -1, 0), (-1001, -2, 999_000_000), (1_700_000_000_123, 1_700_000_000, 123_000_000),
        (Int64.max, 9_223_372_036_854_775, 807_000_000),
        (Int64.min, -9_223_372_036_854_776, 192_000_000),
    ])
    func `milliseconds convert both ways`(count: Int64, seconds: Int64, nanos: Int32) {
        let moment = Timestamp(milliseconds: count)
        #expect(moment == Timestamp(seconds: seconds, nanoseconds: nanos))
        #expect(moment.milliseconds == count)
    }

    @Test func `milliseconds saturate`() {
        #expect(Timestamp(seconds: .max).milliseconds == .max)
        #expect(Timestamp(seconds: .min).milliseconds == .min)
    }

    @Test func `seconds with a fraction are exact to the microsecond`() {
        #expect(
            Timestamp(secondsSince1970: 1_700_000_000.123456)
                == Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_000))
        #expect(
            Timestamp(secondsSince1970: -0.25) == Timestamp(seconds: -1, nanoseconds: 750_000_000))
        #expect(Timestamp(secondsSince1970: 0.9999999) == Timestamp(seconds: 1))
        for wrong in [Double.nan, .infinity, -.infinity, 9e15, -9e15, 1e300] {
            #expect(Timestamp(secondsSince1970: wrong) == nil)
        }
    }

    @Test func `moments move by durations, and back`() {
        let start = Timestamp(seconds: 10, nanoseconds: 500_000_000)
        let steps: [Duration] = [
            .zero, .nanoseconds(1), .nanoseconds(-1), .milliseconds(500), .milliseconds(-501),
            .seconds(3600), .seconds(-3600), .milliseconds(999_999),
        ]
        for step in steps {
            let moved = start.advanced(by: step)
            #expect(moved.duration(since: start) == step)
            #expect((start < moved) == (step > .zero))
            #expect(moved.advanced(by: .zero - step) == start)
        }
    }

    @Test(arguments: [
        (Timestamp.latest, Duration.nanoseconds(1), Timestamp.latest),
        (.latest, .seconds(Int64.max), .latest),
        (.latest, .nanoseconds(-1), Timestamp(seconds: .max, nanoseconds: 999_999_998)),
        (.earliest, .nanoseconds(-1), .earliest),
        (.earliest, .seconds(Int64.min), .earliest),
        (.earliest, .nanoseconds(1), Timestamp(seconds: .min, nanoseconds: 1)),
        (Timestamp(seconds: .max), .milliseconds(1500), .latest),
        (Timestamp(seconds: .min, nanoseconds: 5), .milliseconds(-1), .earliest),
        (Timestamp(seconds: 1, nanoseconds: 999_999_999), .seconds(Int64.max - 1), .latest),
        (
            Timestamp(seconds: -1, nanoseconds: 600_000_000),
            .seconds(Int64.min) + .milliseconds(500),
            Timestamp(seconds: .min, nanoseconds: 100_000_000)
        ),
    ])
    func `moments stay within their range`(
        start: Timestamp, step: Duration, expected: Timestamp
    ) {
        #expect(start.advanced(by: step) == expected)
    }

    @Test(arguments: [
        (Timestamp.latest, Timestamp.earliest, Duration.seconds(Int64.max)),
        (.earliest, .latest, .seconds(Int64.min)),
        (.earliest, Timestamp(seconds: 0, nanoseconds: 1), .seconds(Int64.min)),
        (.latest, Timestamp(seconds: 0), .seconds(Int64.max) + .nanoseconds(999_999_999)),
    ])
    func `the time between two moments stays within its range`(
        moment: Timestamp, earlier: Timestamp, expected: Duration
    ) {
        let duration = moment.duration(since: earlier)
        #expect(duration == expected)
        // Splitting a duration into components traps if it is beyond the range.
        #expect(duration.components.seconds == expected.components.seconds)
    }

    @Test func `moments are ordered by time`() {
        let moments = [
            Timestamp(seconds: -1, nanoseconds: 999_999_999), Timestamp(seconds: 0),
            Timestamp(seconds: 0, nanoseconds: 1), Timestamp(seconds: 1),
        ]
        #expect(moments.reversed().sorted() == moments)
    }
}

@Suite struct BinaryTextTests {
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
    func `the vectors of RFC 4648 convert both ways`(text: String, encoded: String) {
        #expect(Base64.encode(Array(text.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(text.utf8))
        #expect(Base64.decode(encoded.filter { $0 != "=" }) == Array(text.utf8))
    }

    @Test func `base64 accepts the URL-safe letters`() {
        #expect(Base64.decode("-_-_") == Base64.decode("+/+/"))
        for wrong in ["A", "AAAAA", "A*==", "AA AA", "é"] {
            #expect(Base64.decode(wrong) == nil)
        }
    }

    @Test func `a token's bytes have one spelling`() {
        #expect(Base64.decodeToken("Zg") == [0x66])
        #expect(Base64.decodeToken("Zm8") == [0x66, 0x6F])
        #expect(Base64.decodeToken("-_-_") == [0xFB, 0xFF, 0xBF])
        for wrong in ["Zg==", "Zh", "Zm9", "Zg=", "+/+/", "-_+_", "Z", "Zg\u{E9}"] {
            #expect(Base64.decodeToken(wrong) == nil)
        }
    }

    @Test func `every byte converts to both texts and back`() {
        let bytes = Array(UInt8.min...UInt8.max)
        #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        #expect(Base64.decodeToken(Base64.encodeToken(bytes)) == bytes)
        #expect(Hexadecimal.decode(Hexadecimal.encode(bytes)) == bytes)
        #expect(Hexadecimal.encode([0x00, 0xAF]) == "00af")
        #expect(Hexadecimal.decode("00AF") == [0x00, 0xAF])
        #expect(Hexadecimal.decode("0") == nil)
        #expect(Hexadecimal.decode("0g") == nil)
    }
}
