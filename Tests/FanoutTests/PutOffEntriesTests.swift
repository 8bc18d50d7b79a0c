import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Fanout

/// Entries that are put off keep their order, and are bounded by number and by bytes.
@Suite struct PutOffEntriesTests {
    private static func entry(_ position: UInt64, bytes: Int = 10) -> FollowedEntry {
        FollowedEntry(
            position: LogPosition(position), appendedAt: Fixtures.moment,
            container: Fixtures.container,
            body: .change(.stored(String(repeating: "x", count: bytes)), isStale: false))
    }

    @Test func `waiting entries come in order, and a worked entry frees its room`() {
        var entries = PutOffEntries(most: 200)
        entries.judge(Self.entry(1))
        for position in 2...200 { entries.hold(Self.entry(UInt64(position))) }
        let wasFull = entries.isFull
        #expect(wasFull)
        for position in 2...200 {
            entries.finish(Fixtures.container)
            let next = entries.next(of: Fixtures.container)
            #expect(next?.position == LogPosition(UInt64(position)))
            #expect(entries.first == [Fixtures.container: LogPosition(UInt64(position))])
            let isFull = entries.isFull
            #expect(!isFull)
            if let next { entries.judge(next) }
        }
        entries.finish(Fixtures.container)
        let none = entries.next(of: Fixtures.container)
        #expect(none == nil && entries.isEmpty && entries.worked == 200)
    }

    @Test func `at most sixteen mebibytes are put off`() {
        var entries = PutOffEntries(most: 200)
        entries.judge(Self.entry(1, bytes: 1 << 20))
        for position in 2...15 { entries.hold(Self.entry(UInt64(position), bytes: 1 << 20)) }
        let before = entries.isFull
        entries.hold(Self.entry(16, bytes: 1 << 20))
        let after = entries.isFull
        #expect(!before && after)
        entries.finish(Fixtures.container)
        let next = entries.next(of: Fixtures.container)
        #expect(next?.position == LogPosition(2))
        if let next { entries.judge(next) }
        let again = entries.isFull
        #expect(!again)
    }

    @Test func `an entry that was just appended counts by its content`() {
        var change = Fixtures.change()
        change.after = RecordImage(["text": .string(String(repeating: "x", count: 5000))])
        let entry = FollowedEntry(
            position: LogPosition(1), appendedAt: Fixtures.moment, container: Fixtures.container,
            body: .change(.read(change), isStale: false))
        #expect((5000...6000).contains(entry.memoryBytes))
    }
}
