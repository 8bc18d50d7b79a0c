import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Fanout

/// A container with large fan-outs does not delay the changes of others until all of them are
/// done.
@Suite struct LogTurnsTests {
    private static let other = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.Music"), environment: .development)

    /// Reads a log of changes of the first container (`a`) and the second (`b`), one a second.
    ///
    /// Returns the indices of the changes, with fan-outs of `count`, that are left to ranges.
    private static func left(
        _ log: String, of count: Int, by turns: inout LogTurns, from start: Int = 0
    ) -> [Int] {
        let entries = log.enumerated().map { index, letter in
            FollowedEntry(
                LogEntry(
                    position: LogPosition(UInt64(start + index + 1)),
                    appendedAt: Fixtures.moment.advanced(by: .seconds(start + index)),
                    container: letter == "a" ? Fixtures.container : other,
                    body: .change(
                        Fixtures.change(), source: Fixtures.identifier("test"), isStale: false)))
        }
        turns.look(ahead: entries)
        return entries.filter { turns.yields(count, of: $0.container, at: $0.appendedAt) }
            .map { Int($0.position.rawValue) }
    }

    private static func left(_ log: String, of count: Int) -> [Int] {
        var turns = LogTurns()
        return left(log, of: count, by: &turns)
    }

    @Test func `a container beyond its allowance leaves fan-outs to ranges`() {
        #expect((LogTurns.allowance, LogTurns.perSecond) == (256, 64))
        // Each container has two fan-outs of 128 at once, and then one in two seconds.
        #expect(Self.left("aaaabaaabb", of: 128) == [4, 8])
        #expect(Self.left("aab", of: 3000) == [1, 2, 3])
    }

    @Test func `a container that is alone and a small fan-out keep the log's turn`() {
        #expect(Self.left("aaaaaaaa", of: 9000) == [])
        #expect(Self.left(String(repeating: "a", count: 200) + "b", of: 64) == [])
        #expect(Self.left("", of: 1) == [])
    }

    @Test func `reading in many parts counts the same as in one`() {
        var turns = LogTurns()
        #expect(Self.left("b", of: 1, by: &turns) == [])
        let left = (1...8).flatMap { Self.left("a", of: 200, by: &turns, from: $0) }
        #expect(left == [3, 4, 6, 7, 9])
    }

    @Test func `a container counts for a minute after its last change`() {
        var turns = LogTurns()
        #expect(Self.left("b", of: 1, by: &turns) == [])
        #expect(Self.left("a", of: 9000, by: &turns, from: 30) == [31])
        #expect(Self.left("a", of: 9000, by: &turns, from: 60) == [61])
        #expect(Self.left("a", of: 9000, by: &turns, from: 61) == [])
    }

    @Test func `a clock that was set back keeps no container from the log's turn`() {
        var turns = LogTurns()
        let before = Self.left("aab", of: 128, by: &turns, from: 7200)
        #expect(before == [])
        let after = Self.left("abaab", of: 128, by: &turns)
        #expect(after == [1])
        var others = LogTurns()
        let contended = Self.left("ba", of: 9000, by: &others, from: 7200)
        #expect(contended == [7201, 7202])
        let alone = Self.left("a", of: 9000, by: &others)
        #expect(alone == [])
    }
}
