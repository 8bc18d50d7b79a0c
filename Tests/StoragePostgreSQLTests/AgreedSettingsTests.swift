import Testing

@testable import StoragePostgreSQL

/// How the relays of one store compare their settings.
@Suite struct AgreedSettingsTests {
    private static let own = AgreedSettings(
        ["a": "1", "b": "", "c": "x", "older": "0"], required: ["c"])

    @Test func `published settings read back, and equal settings have equal texts`() throws {
        let text = try Self.own.storedText()
        #expect(AgreedSettings(stored: text)?.values == Self.own.values)
        let same = AgreedSettings(["c": "x", "b": "", "older": "0", "a": "1"])
        #expect(try same.storedText() == text)
        let quoted = AgreedSettings(["q": "\"\\\n\u{202e}"])
        #expect(AgreedSettings(stored: try quoted.storedText()) == quoted)
    }

    @Test(arguments: ["", "x", "[]", "null", #"{"a": 1}"#, #"{"a": "1""#])
    func `malformed settings are refused`(text: String) {
        #expect(AgreedSettings(stored: text) == nil)
    }

    @Test func `only settings that both relays know can differ`() {
        let theirs = AgreedSettings(["a": "2", "b": "1", "c": "y", "newer": "9"])
        let found = Self.own.differences(of: theirs)
        #expect(found.map(\.name) == ["a", "b", "c"])
        #expect(found.map(\.isRequired) == [false, false, true])
        #expect(found[0].description == "a is 2 there and 1 here")
        #expect(found[1].description == "b is 1 there and not set here")
        #expect(found[1].comparison == "b is 1, and not set elsewhere")
        #expect(Self.own.differences(of: Self.own) == [])
    }

    @Test func `a long list of differences is shortened`() {
        let names = (1...9).map { "s\($0)" }
        let own = AgreedSettings(Dictionary(uniqueKeysWithValues: names.map { ($0, "1") }))
        let theirs = AgreedSettings(Dictionary(uniqueKeysWithValues: names.map { ($0, "2") }))
        let list = SettingDifference.list(own.differences(of: theirs), \.name)
        #expect(list == "s1, s2, s3, s4, s5, and 4 more")
    }
}
