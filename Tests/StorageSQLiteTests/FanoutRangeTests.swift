import Foundation
import GRDB
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

@Suite struct FanoutRangeTests {
    @Test(arguments: Seeds.all)
    func `serials survive their compact form`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var serial: UInt64 = 0
        let serials = (0..<200).map { _ in
            serial += UInt64.random(in: 1...(1 << UInt64.random(in: 0...40, using: &generator)))
            return serial
        }
        let bytes = SerialList.encode(serials)
        #expect(SerialList.decode(bytes) == serials)
        #expect(SerialList.decode(bytes + [0x80]) == nil)
    }

    @Test func `serials that do not ascend or are too large are damage`() {
        #expect(SerialList.decode([1, 0]) == nil)
        #expect(SerialList.decode(Array(repeating: 0xFF, count: 12)) == nil)
        #expect(SerialList.decode([UInt8]()) == [])
    }

    /// Saves a once subscription for each user, and settles a change that claims them and leaves
    /// them to a range.
    private static func claimed(
        _ users: [String], in store: RelayStore
    ) async throws -> (position: LogPosition, serials: [UInt64]) {
        var serials: [UInt64] = []
        for user in users {
            var subscription = Sample.subscription("s", artist: "a", of: Sample.owner(user))
            subscription.firesOnce = true
            let outcomes = try await store.edit(
                [.create(subscription)], of: Sample.owner(user), atomicity: .independent,
                at: Sample.moment(1))
            if case .saved(let version)? = outcomes.first { serials.append(version.serial) }
        }
        _ = try await store.append(
            [Sample.unkeyed("a")], container: Sample.container, source: Sample.source,
            at: Sample.moment(1))
        let position = try await store.head()
        #expect(try await store.claimOnce(serials, at: position) == Set(serials))
        var step = SettledStep(
            from: try await store.mark(), to: ProgressMark(position: position, offset: 0))
        step.newRanges = [
            NewRange(container: Sample.container, position: position, serials: serials)
        ]
        try await store.settle(step)
        return (position, serials)
    }

    @Test func `once subscriptions outlive their claim until their range is settled`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        let (_, serials) = try await Self.claimed(["ann", "bob", "cat"], in: store)
        // Pruning as it runs each minute, with the progress past the change and no snapshot.
        let first = try await store.prune(Retention(), at: Sample.moment(60))
        #expect(first.endedVersions == 0)
        let range = try #require(try await store.nextRange(of: Sample.container, after: 0))
        let members = try await store.members(range.serials[...], of: range)
        #expect(members.map(\.version.serial) == serials)
        #expect(try RelayStore.check(path: home.path).problems == [])

        let mark = try await store.mark()
        var last = SettledStep(from: mark, to: mark)
        last.rangeSteps = [RangeStep(id: range.id, from: 0, to: 3, isFinished: true)]
        try await store.settle(last)
        #expect(try await store.prune(Retention(), at: Sample.moment(120)).endedVersions == 3)
        await store.close()
    }

    @Test func `a subscription missing from a range is reported, and the others are served`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        let (position, serials) = try await Self.claimed(["ann", "bob", "cat"], in: store)
        try await store.write { commit in
            try commit.db.execute(
                sql: "DELETE FROM subscription WHERE serial = ?", arguments: [serials[1].stored])
        }
        let range = try #require(try await store.nextRange(of: Sample.container, after: 0))
        let members = try await store.members(range.serials[...], of: range)
        #expect(members.map(\.version.serial) == [serials[0], serials[2]])
        #expect(
            store.unreadable.takeNews() == [
                UnreadableRow(
                    table: "subscription", key: "\(serials[1])",
                    reason: "the range of the change at \(position) names it, but it is missing")
            ])
        #expect(
            try RelayStore.check(path: home.path).problems == [
                "1 × a range names a subscription that is missing"
            ])
        await store.close()
    }

    @Test func `a range that is set aside is kept with its reason and delays nothing`()
        async throws
    {
        let home = try TemporaryStore()
        let store = try await home.openReady()
        _ = try await Self.claimed(["ann"], in: store)
        let range = try #require(try await store.nextRange(of: Sample.container, after: 0))
        try await store.setAside(range, because: "it cannot be worked", at: Sample.moment(60))
        #expect(try await store.nextRange(of: Sample.container, after: 0) == nil)
        let backlog = try await store.backlog()
        #expect(backlog.ranges == 0 && backlog.rangeSubscriptions == 0 && backlog.quarantined == 1)
        var retention = Retention()
        retention.logAge = .seconds(10)
        #expect(try await store.prune(retention, at: Sample.moment(100)).logEntries > 0)
        #expect(try RelayStore.check(path: home.path).problems == [])
        retention.quarantineAge = .seconds(10)
        #expect(try await store.prune(retention, at: Sample.moment(100)).quarantined == 1)
        #expect(try await store.backlog().quarantined == 0)
        await store.close()
    }

    // MARK: What cannot be read

    @Test func `entries before an unreadable one are handed out, then that one is named`()
        async throws
    {
        let home = try TemporaryStore()
        var store = try await home.openReady()
        for name in ["a", "b", "c"] {
            _ = try await store.append(
                [Sample.unkeyed(name)], container: Sample.container, source: Sample.source,
                at: Sample.moment(0))
        }
        await store.close()
        let queue = try DatabaseQueue(path: home.path)
        try await queue.write { db in
            try db.execute(sql: "UPDATE logEntry SET body = '{\"' WHERE position = 2")
        }
        try queue.close()
        store = try home.open()
        let first = try await store.entries(after: .start, limit: 10)
        #expect(first.map(\.position.rawValue) == [1])
        let entry = UnreadableEntry(
            position: LogPosition(2), isChange: true,
            reason: "logEntry is damaged: logEntry.body contains a value that Belfry does not write"
        )
        await #expect(throws: StorageError.unreadable(entry)) {
            _ = try await store.entries(after: LogPosition(1), limit: 10)
        }
        try await store.quarantine(entry, at: Sample.moment(1))
        try await store.quarantine(entry, at: Sample.moment(2))
        #expect(try await store.backlog().quarantined == 1)
        let rest = try await store.entries(after: LogPosition(2), limit: 10)
        #expect(rest.map(\.position.rawValue) == [3])
        await store.close()
    }
}
