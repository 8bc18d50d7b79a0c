import RelayModel
import Storage
import Testing

/// The stored health of subscriptions: the contract of ``Storage/ShardProgress`` and
/// ``Storage/SubscriptionRegistry``.
package enum HealthConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase(
            "the health of a subscription is the same before and after it is added up, and after "
                + "a restart", check: sums),
        ConformanceCase(
            "a refused step changes no health", check: refused),
        ConformanceCase(
            "a new version begins without health, and an ended version leaves none",
            check: ends),
        ConformanceCase(
            "firings of many subscriptions are added up in parts, each once", check: parts),
    ]

    private static let ann = Sample.owner("ann")

    private static func note(
        _ position: UInt64, _ fired: [UInt64], unreached: [UnreachedFiring] = [],
        errors: [UInt64] = []
    ) -> FiringNote {
        FiringNote(
            position: LogPosition(position), at: Sample.moment(Int64(position)), fired: fired,
            unreached: unreached, errors: errors)
    }

    private static func step(
        _ from: UInt64, _ to: UInt64, _ firings: [FiringNote]
    ) -> SettledStep {
        var step = SettledStep(
            from: ProgressMark(position: LogPosition(from), offset: 0),
            to: ProgressMark(position: LogPosition(to), offset: 0))
        step.firings = firings
        return step
    }

    private static func event<Detail>(
        _ position: UInt64, _ detail: Detail
    ) -> SubscriptionHealth.Event<Detail> {
        .init(
            position: LogPosition(position), at: Sample.moment(Int64(position)), detail: detail)
    }

    private static func save(
        _ id: String, artist: String, in store: any ConformingStore
    ) async throws -> UInt64 {
        try await SubscriptionConformance.save(
            Sample.subscription(id, artist: artist, of: ann), in: store
        ).serial
    }

    static func sums(_ factory: any StoreFactory) async throws {
        var store = try await factory.makeReadyStore()
        var serials: [UInt64] = []
        for number in 0..<4 {
            serials.append(try await save("s\(number)", artist: "a\(number)", in: store))
        }
        // The deliveries of `Sample` belong to serial 4.
        #expect(serials == [1, 2, 3, 4])
        try await store.settle(
            step(
                0, 9,
                [
                    note(5, [1, 2], unreached: [.init(serial: 2, reason: .noDevice)]),
                    note(7, [1], errors: [3]),
                ]))
        // A range of an earlier change (6) may end after a later change (10) was settled.
        var late = step(
            9, 10,
            [
                note(10, [2], unreached: [.init(serial: 2, reason: .origin)]),
                note(6, [1, 2], unreached: [.init(serial: 1, reason: .merged)]),
            ])
        late.deadLetters = [ProgressConformance.letter(3), ProgressConformance.letter(8)]
        try await store.settle(late)

        var first = SubscriptionHealth()
        (first.fired, first.lastFired) = (3, event(7, .init()))
        (first.unreached, first.lastUnreached) = ([.merged: 1], event(6, .merged))
        var second = SubscriptionHealth()
        (second.fired, second.lastFired) = (3, event(10, .init()))
        second.unreached = [.noDevice: 1, .origin: 1]
        second.lastUnreached = event(10, .origin)
        var third = SubscriptionHealth()
        (third.errors, third.lastError) = (1, event(7, .init()))
        var fourth = SubscriptionHealth()
        fourth.undelivered = 2
        fourth.lastUndelivered = .init(
            position: LogPosition(1), at: Sample.moment(8), detail: "BadDeviceToken")
        let expected: [UInt64: SubscriptionHealth] = [
            1: first, 2: second, 3: third, 4: fourth,
        ]
        let asked = Set(serials + [99])
        for _ in 0..<2 {
            #expect(try await store.health(of: asked) == expected)
            #expect(try await store.health(of: [2]) == [2: second])
            store = try await factory.reopen(store)
            #expect(try await store.health(of: asked) == expected)
            while try await store.addUpFirings() {}
        }
        // A later firing is added to the health that was already added up.
        try await store.settle(step(10, 11, [note(11, [1])]))
        while try await store.addUpFirings() {}
        let later = try await store.health(of: [1])[1]
        #expect(later?.fired == 4 && later?.lastFired == event(11, .init()))
        #expect(later?.lastUnreached == first.lastUnreached)
        #expect(try await store.health(of: []) == [:])
    }

    static func refused(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let serial = try await save("s", artist: "a", in: store)
        try await store.settle(step(0, 5, [note(5, [serial])]))
        await #expect(throws: StorageError.self) {
            try await store.settle(step(4, 6, [note(6, [serial])]))
        }
        #expect(try await store.health(of: [serial])[serial]?.fired == 1)
    }

    static func ends(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let first = try await save("s", artist: "a", in: store)
        let other = try await save("t", artist: "b", in: store)
        try await store.settle(step(0, 2, [note(2, [first, other])]))
        while try await store.addUpFirings() {}
        let changed = Sample.subscription("s", artist: "c", of: ann)
        let outcomes = try await store.edit(
            [.update(changed)], of: ann, atomicity: .independent, at: Sample.moment(3))
        guard case .saved(let second)? = outcomes.first else {
            Issue.record("not saved: \(outcomes)")
            return
        }
        #expect(try await store.health(of: [second.serial]) == [:])
        // The old version fired for a change before the edit. That firing is settled after the
        // version has ended.
        try await store.settle(step(2, second.activation.rawValue, [note(3, [first, other])]))
        _ = try await store.prune(Retention(), at: Sample.moment(9))
        while try await store.addUpFirings() {}
        let left = try await store.health(of: [first, other, second.serial])
        #expect(left.mapValues(\.fired) == [other: 2])
    }

    static func parts(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let serial = try await save("s", artist: "a", in: store)
        let many = Array(serial..<serial + 1500)
        for number in 1...6 as ClosedRange<UInt64> {
            try await store.settle(
                step(number - 1, number, [note(number, many.map { $0 + (number - 1) * 1500 })]))
        }
        try await store.settle(step(6, 7, [note(7, [serial])]))
        #expect(store.firingsNotAddedUp == 9001)
        #expect(try await store.addUpFirings())
        #expect(try await store.health(of: [serial])[serial]?.fired == 2)
        while try await store.addUpFirings() {}
        #expect(store.firingsNotAddedUp == 0)
        #expect(try await store.health(of: [serial])[serial]?.fired == 2)
        // Health is never kept for versions that do not exist.
        #expect(try await store.health(of: [serial + 1, serial + 8999]) == [:])
    }
}
