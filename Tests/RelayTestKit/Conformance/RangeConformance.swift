import RelayModel
import Storage
import Testing

/// The contract of ``Storage/FanoutRanges``.
package enum RangeConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase(
            "a range is written with the progress, advanced in order, and ended once",
            check: life),
        ConformanceCase(
            "a range reads the versions active at its change, also after they have ended",
            check: members),
        ConformanceCase(
            "claimed once subscriptions are kept until their range is settled", check: claims),
        ConformanceCase(
            "a range that is set aside is kept, and does not block others", check: settingAside),
    ]

    private static func passed(_ position: LogPosition) -> ProgressMark {
        ProgressMark(position: position, offset: 0)
    }

    private static func append(to store: any ConformingStore) async throws -> LogPosition {
        _ = try await store.append(
            [Sample.unkeyed("a")], container: Sample.container, source: Sample.source,
            at: Sample.moment(0))
        return try await store.head()
    }

    /// Moves the progress to `position`, and leaves these serials to ranges of the change there.
    private static func leave(
        _ serials: [[UInt64]], at position: LogPosition, in store: any ConformingStore
    ) async throws {
        var step = SettledStep(from: try await store.mark(), to: passed(position))
        step.newRanges = serials.map {
            NewRange(container: Sample.container, position: position, serials: $0)
        }
        try await store.settle(step)
    }

    private static func settle(
        _ range: RangeStep, in store: any ConformingStore
    ) async throws {
        let mark = try await store.mark()
        var step = SettledStep(from: mark, to: mark)
        step.rangeSteps = [range]
        try await store.settle(step)
    }

    private static func next(
        after id: UInt64 = 0, in store: any ConformingStore
    ) async throws -> FanoutRange? {
        try await store.nextRange(of: Sample.container, after: id)
    }

    private static func life(_ factory: any StoreFactory) async throws {
        var store = try await factory.makeReadyStore()
        let position = try await append(to: store)
        try await leave([[1, 5], [9]], at: position, in: store)
        #expect(try await store.containersWithRanges() == [Sample.container])
        let first = try #require(try await next(in: store))
        #expect(first.serials == [1, 5] && first.offset == 0)
        let second = try await next(after: first.id, in: store)
        #expect(second?.serials == [9])

        let move = RangeStep(id: first.id, from: 0, to: 3, isFinished: false)
        try await settle(move, in: store)
        await #expect(throws: StorageError.progressMoved(passed(position))) {
            try await settle(move, in: store)
        }
        store = try await factory.reopen(store)
        #expect(try await next(in: store)?.offset == 3)
        let last = RangeStep(id: first.id, from: 3, to: 4, isFinished: true)
        try await settle(last, in: store)
        await #expect(throws: StorageError.progressMoved(passed(position))) {
            try await settle(last, in: store)
        }
        #expect(try await next(in: store) == second)
        #expect(try await store.backlog().rangeSubscriptions == 1)
    }

    private static func members(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let ann = Sample.owner("ann")
        let old = try await store.register(
            Sample.device("phone", of: "ann", token: 1), at: Sample.moment(1))
        let version = try await save("s", of: ann, in: store)
        let position = try await append(to: store)
        try await leave([[version.serial]], at: position, in: store)
        _ = try await store.register(
            Sample.device("phone", of: "ann", token: 2), at: Sample.moment(2))
        _ = try await store.edit(
            [.delete(version.subscription.id)], of: ann, atomicity: .independent,
            at: Sample.moment(2))
        try await store.settle(
            SettledStep(from: passed(position), to: passed(try await store.head())))
        // Pruning keeps what an open range needs.
        _ = try await store.prune(Retention(), at: Sample.moment(60))
        let range = try #require(try await next(in: store))
        let members = try await store.members(range.serials[...], of: range)
        #expect(members == [RangeMember(version: version, devices: [old])])
    }

    private static func save(
        _ id: String, of owner: SubscriptionOwner, once: Bool = false,
        in store: any ConformingStore
    ) async throws -> SubscriptionVersion {
        let outcomes = try await store.edit(
            [.create(Sample.subscription(id, artist: "a", of: owner, once: once))], of: owner,
            atomicity: .independent, at: Sample.moment(1))
        guard case .saved(let version)? = outcomes.first else {
            Issue.record("not saved: \(outcomes)")
            throw CancellationError()
        }
        return version
    }

    /// Appends a change, claims a once subscription of each user for it, and leaves them to a
    /// range.
    private static func claimed(
        _ users: [String], in store: any ConformingStore
    ) async throws -> [UInt64] {
        var serials: [UInt64] = []
        for user in users {
            serials.append(
                try await save("s", of: Sample.owner(user), once: true, in: store).serial)
        }
        let position = try await append(to: store)
        #expect(try await store.claimOnce(serials, at: position) == Set(serials))
        try await leave([serials], at: position, in: store)
        return serials
    }

    private static func claims(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let serials = try await claimed(["ann", "bob", "cat"], in: store)
        #expect(try await store.prune(Retention(), at: Sample.moment(60)).endedVersions == 0)
        let range = try #require(try await next(in: store))
        let members = try await store.members(range.serials[...], of: range)
        #expect(members.map(\.version.serial) == serials)
        try await settle(
            RangeStep(id: range.id, from: 0, to: 3, isFinished: true), in: store)
        #expect(try await store.prune(Retention(), at: Sample.moment(120)).endedVersions == 3)
    }

    private static func settingAside(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        _ = try await claimed(["ann"], in: store)
        let range = try #require(try await next(in: store))
        try await store.setAside(range, because: "it cannot be worked", at: Sample.moment(60))
        #expect(try await next(in: store) == nil)
        let backlog = try await store.backlog()
        #expect(backlog.ranges == 0 && backlog.rangeSubscriptions == 0 && backlog.quarantined == 1)
        #expect(
            backlog.newestSetAside
                == SetAsideChange(
                    container: Sample.container, position: range.position,
                    reason: "it cannot be worked"))
        var retention = Retention()
        retention.logAge = .seconds(10)
        #expect(try await store.prune(retention, at: Sample.moment(100)).logEntries > 0)
        retention.quarantineAge = .seconds(10)
        #expect(try await store.prune(retention, at: Sample.moment(100)).quarantined == 1)
        #expect(try await store.backlog().quarantined == 0)
    }
}
