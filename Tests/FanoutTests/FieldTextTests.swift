import RelayModel
import Testing

@testable import Fanout

@Suite struct FieldTextTests {
    /// Values of `date -u -d @N`, and of the proleptic Gregorian calendar beyond.
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
    func `moments read as ISO 8601`(seconds: Int64, text: String) {
        #expect(FieldText.iso8601(Timestamp(seconds: seconds)) == text)
        // Parts of a second are left out, not rounded.
        let late = Timestamp(seconds: seconds, nanoseconds: 999_999_999)
        #expect(FieldText.iso8601(late) == text)
    }

    @Test func `the ends of time are dates too`() {
        #expect(FieldText.iso8601(.earliest) == "-292277022657-01-27T08:29:52Z")
        #expect(FieldText.iso8601(.latest) == "+292277026596-12-04T15:30:07Z")
    }

    @Test(
        arguments: [
            (1907, "1907"), (-0.0, "0"), (0.1, "0.1"), (1e300, "1e+300"), (-2.5, "-2.5"),
            (9_007_199_254_740_992, "9007199254740992"),
        ] as [(Double, String)])
    func `numbers read as people write them`(number: Double, text: String) {
        #expect(FieldText.digits(of: number) == text)
    }
}
