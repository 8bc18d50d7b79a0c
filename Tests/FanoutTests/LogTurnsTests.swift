import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Fanout

/// A container with large fan-outs does not keep the changes of others waiting for all of them.
@Suite struct LogTurnsTests {
    private static let other = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.Music"), environment: .development)

    /// A log of changes of the first container (`a`) and the second (`b`).
    private static func turns(_ log: String) -> LogTurns {
        LogTurns(
            log.enumerated().map { index, letter in
                FollowedEntry(
                    LogEntry(
                        position: LogPosition(UInt64(index + 1)), appendedAt: Fixtures.moment,
                        container: letter == "a" ? Fixtures.container : other,
                        body: .change(
                            Fixtures.change(), source: Fixtures.identifier("test"),
                            isStale: false)))
            })
    }

    /// Which changes of a log with fan-outs of `count` are left to ranges.
    private static func left(_ log: String, of count: Int) -> [Int] {
        var turns = turns(log)
        return log.enumerated().compactMap { index, letter in
            let yields = turns.yields(
                count, at: LogPosition(UInt64(index + 1)),
                of: letter == "a" ? Fixtures.container : other)
            return yields ? index + 1 : nil
        }
    }

    @Test func `beyond its share a container leaves fan-outs to ranges while others wait`() {
        #expect(LogTurns.share == 2048)
        // Two of 1,000 fit the share, and behind the last of the others nobody waits.
        #expect(Self.left("aaaaabaaa", of: 1000) == [3, 4, 5])
        #expect(Self.left("ababab", of: 1000) == [5])
        #expect(Self.left("aaaaab", of: 3000) == [1, 2, 3, 4, 5])
    }

    @Test func `who is alone keeps the log's turn, and so does a small fan-out`() {
        #expect(Self.left("aaaaaaaa", of: 9000) == [])
        #expect(Self.left("baaaaaaa", of: 9000) == [1])
        #expect(Self.left(String(repeating: "a", count: 200) + "b", of: 256) == [])
        #expect(Self.left("", of: 1) == [])
    }
}
