import RelayTestKit
import Storage
import Testing

@Suite struct ContainerSettingsTests {
    private let before = ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"])

    /// A waiting call keeps a dozen copies of the settings that it hands on, so a copy must be
    /// small.
    @Test func `the settings have the size of one reference`() {
        #expect(MemoryLayout<ContainerSettings>.size == MemoryLayout<Int>.size)
    }

    @Test func `changing a copy does not change the original`() {
        var after = before
        after.topics.append("com.example.Art.voip")
        after.quotas[.records] = 5
        after.keepsInbox = true
        after.sessions = nil
        #expect(before != after)
        #expect(before == ContainerSettings(key: Fixtures.container, topics: before.topics))
        #expect(before.topics == ["com.example.Art"] && !before.keepsInbox)
        #expect(before.sessions == SessionSettings())
        #expect(after.topics == ["com.example.Art", "com.example.Art.voip"])
        #expect(after.quotas[.records] == 5 && after.sessions == nil && after.keepsInbox)
    }
}
