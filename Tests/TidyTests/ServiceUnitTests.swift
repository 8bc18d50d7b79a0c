import Testing

/// The systemd unit allows what the relay does, and little else.
@Suite struct ServiceUnitTests {
    private static func values(of key: String) throws -> [String] {
        try Repository.file("deploy/belfry.service").lines
            .filter { $0.hasPrefix("\(key)=") }
            .map { String($0.dropFirst(key.count + 1)) }
    }

    /// Some refused system calls, such as `nice`, fail silently, so no other test would notice.
    @Test func `the filter of system calls allows what threads need`() throws {
        let steps = Repository.sources.filter { file in
            file.lines.contains { $0.has("nice(Self.") }
        }
        #expect(!steps.isEmpty)
        let filters = try Self.values(of: "SystemCallFilter")
        let refusing = try #require(filters.lastIndex { $0.hasPrefix("~") })
        let last = try #require(filters.lastIndex(of: "setpriority"))
        #expect(last > refusing)
    }

    /// The end may wait three times for `shutdown.graceSeconds` (20 s unless set), plus what is
    /// between the waits.
    @Test func `the unit allows an end the time that it may take`() throws {
        let seconds = try Self.values(of: "TimeoutStopSec").compactMap { Int($0) }
        #expect(seconds.count == 1 && seconds[0] > 3 * 20)
    }
}
