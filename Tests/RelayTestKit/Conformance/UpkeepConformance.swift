import RelayModel
import Storage
import Testing

/// The contract of ``Storage/StoreUpkeep``.
package enum UpkeepConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase("the log loses only entries that are settled and old", check: ages),
        ConformanceCase(
            "unchanged records are searched for only now and then, not in each round",
            check: shadows),
        ConformanceCase(
            "versions of records that are not kept expire, and kept records do not",
            check: versions),
        ConformanceCase(
            "a container's oldest dedupe keys are forgotten beyond a number, and no other's",
            check: dedupeKeys),
        ConformanceCase(
            "changes that were set aside are kept up to a size, and until the progress has "
                + "passed them",
            check: setAside),
        ConformanceCase(
            "dropping and redriving dead letters keeps the accounts balanced", check: accounts),
        ConformanceCase("the backlog counts entries as they come and go", check: backlog),
        ConformanceCase(
            "a bound refuses changes with its reason until it is lifted, without a restart",
            check: bounds),
        ConformanceCase(
            "a user whom nothing refers to is forgotten, and is the same when they come back",
            check: users),
    ]

    private static func users(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        func sign(_ number: UInt64, _ user: String, until end: Int64) async throws {
            _ = try await store.startSession(
                UserSession(
                    id: UUIDBytes(high: 1, low: number), container: Sample.container,
                    user: Sample.identifier(user), startedAt: Sample.moment(1),
                    endsAt: Sample.moment(end)))
        }
        func names() async throws -> [String] {
            try await store.userPage(
                of: Sample.container, after: nil, prefix: "", PageBounds(rows: 100)
            ).elements.map(\.user.rawValue)
        }
        func prune(_ count: Int) async throws -> Int {
            var (place, total): (Int64?, Int) = (0, 0)
            while let start = place {
                let (next, deleted) = try await store.pruneUsers(after: start, among: count)
                (place, total) = (next, total + deleted)
            }
            return total
        }
        for (number, user) in ["ann", "bob", "cid", "dan", "eve"].enumerated() {
            try await sign(UInt64(number + 1), user, until: user == "cid" ? 1000 : 10)
        }
        _ = try await store.register(
            Sample.device("phone", of: "bob", token: 1), at: Sample.moment(5))
        #expect(try await prune(2) == 0)
        #expect(try await store.pruneSessions(at: Sample.moment(500), limit: 9) == 4)
        // The last one stays until another user comes, because its number would be given again.
        #expect(try await prune(2) == 2)
        #expect(try await names() == ["bob", "cid", "eve"])
        try await sign(6, "fay", until: 1000)
        #expect(try await prune(1) == 1)
        #expect(try await prune(100) == 0)
        try await sign(7, "ann", until: 1000)
        let reopened = try await factory.reopen(store)
        #expect(
            try await reopened.userPage(
                of: Sample.container, after: nil, prefix: "", PageBounds(rows: 100)
            ).elements.map(\.user.rawValue) == ["ann", "bob", "cid", "fay"])
        #expect(
            try await reopened.sessions(
                of: Sample.container, user: Sample.identifier("ann"), at: Sample.moment(500),
                limit: 9
            ).map(\.id.low) == [7])
    }

    private static func append(_ number: Int64, to store: any ConformingStore) async throws {
        _ = try await store.append(
            [Sample.keyed("r\(number)", .position, "\(number)")], container: Sample.container,
            source: Sample.source, at: Sample.moment(number))
    }

    private static func ages(_ factory: any StoreFactory) async throws {
        var store = try await factory.makeReadyStore()
        for number in 0..<20 as Range<Int64> { try await append(number, to: store) }
        try await store.settle(
            SettledStep(from: .start, to: ProgressMark(position: LogPosition(12), offset: 0)))
        var retention = Retention()
        retention.logAge = .seconds(10)
        // Entry n was appended at second n - 1.
        let first = try await store.prune(retention, at: Sample.moment(14), portion: 2)
        #expect(first.logEntries == 5)
        let second = try await store.prune(retention, at: Sample.moment(1000), portion: 2)
        #expect(second.logEntries == 7)
        // Reopening makes the store read from the disk instead of memory.
        store = try await factory.reopen(store)
        let left = try await store.entries(after: LogPosition(12), limit: 100)
        #expect(left.map(\.position.rawValue) == Array(13...20))
    }

    /// Appends changes with the delivery IDs `numbers`, and returns those that were new.
    private static func deliver(
        _ numbers: Range<Int64>, to store: any ConformingStore, at second: Int64,
        container: ContainerKey = Sample.container
    ) async throws -> [Int64] {
        let outcomes = try await store.append(
            numbers.map { Sample.keyed("r\($0)", .delivery, "\($0)") }, container: container,
            source: Sample.source, at: Sample.moment(second))
        return zip(numbers, outcomes).compactMap { number, outcome in
            if case .appended = outcome { number } else { nil }
        }
    }

    private static func dedupeKeys(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        for number in 0..<20 as Range<Int64> {
            #expect(try await deliver(number..<number + 1, to: store, at: number) == [number])
        }
        _ = try await deliver(0..<4, to: store, at: 0, container: Sample.otherContainer)
        var retention = Retention()
        retention.dedupeKeys = 5
        // Those of the last minute are counted later.
        let none = try await store.prune(retention, at: Sample.moment(10), portion: 4)
        #expect(none.dedupeKeys == 0)
        let first = try await store.prune(retention, at: Sample.moment(80), portion: 4)
        #expect(first.dedupeKeys == 15)
        #expect(try await deliver(15..<20, to: store, at: 81) == [])
        #expect(
            try await deliver(0..<4, to: store, at: 81, container: Sample.otherContainer) == [])
        #expect(try await deliver(0..<3, to: store, at: 82) == [0, 1, 2])
        // After a start, all are counted anew.
        let reopened = try await factory.reopen(store)
        let second = try await reopened.prune(retention, at: Sample.moment(200), portion: 100)
        #expect(second.dedupeKeys == 3)
        #expect(try await deliver(0..<3, to: reopened, at: 201) == [])
        #expect(try await deliver(15..<20, to: reopened, at: 201) == [15, 16, 17])
        retention.dedupeKeys = nil
        let unbounded = try await reopened.prune(retention, at: Sample.moment(300), portion: 100)
        #expect(unbounded.dedupeKeys == 0)
    }

    private static func versions(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        func append(_ version: Int64, day: Int64) async throws -> [AppendOutcome] {
            try await store.append(
                ["a", "b"].map { Sample.unkeyed($0, version: version) },
                container: Sample.container, source: Sample.source,
                at: Sample.moment(day * 86_400))
        }
        func prune(day: Int64) async throws -> Int {
            try await store.prune(
                Retention(), at: Sample.moment(day * 86_400), portion: 1
            ).shadows
        }
        func areStale(_ outcomes: [AppendOutcome]) -> Bool {
            outcomes.count == 2
                && outcomes.allSatisfy { if case .appendedAsStale = $0 { true } else { false } }
        }
        _ = try await append(5, day: 0)
        _ = try await append(6, day: 30)
        // The age of a record's version counts from its last change.
        #expect(try await prune(day: 100) == 0)
        #expect(areStale(try await append(5, day: 101)))
        #expect(try await prune(day: 121) == 2)
        #expect(!areStale(try await append(4, day: 122)))
        // For a type whose records are kept, the last version is never forgotten.
        try await store.extendSchema(
            of: Sample.container,
            with: [RecordTypeDefinition(Sample.change("a").recordType, isInferred: true)])
        _ = try await append(7, day: 123)
        #expect(try await prune(day: 400) == 0)
        #expect(areStale(try await append(6, day: 401)))
    }

    private static func shadows(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        for (name, second) in [("a", 0), ("b", 100)] as [(String, Int64)] {
            _ = try await store.append(
                [Sample.unkeyed(name, version: 1)], container: Sample.container,
                source: Sample.source, at: Sample.moment(second))
        }
        var retention = Retention()
        retention.logAge = nil
        retention.shadowAge = .seconds(7200)
        let first = try await store.prune(retention, at: Sample.moment(7250), portion: 10)
        #expect(first.shadows == 1)
        // Looking for the other one reads all records, so it happens only once in a fraction of
        // the age.
        let second = try await store.prune(retention, at: Sample.moment(7400), portion: 10)
        #expect(second.shadows == 0)
        let third = try await store.prune(retention, at: Sample.moment(7550), portion: 10)
        #expect(third.shadows == 1)
    }

    private static func setAside(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        for number in 0..<6 as Range<Int64> { try await append(number, to: store) }
        func setAside(_ position: UInt64) async throws {
            let entry = UnreadableEntry(
                position: LogPosition(position), isChange: true, reason: "why")
            try await store.quarantine(entry, at: Sample.moment(1))
        }
        for position in 1...5 as ClosedRange<UInt64> { try await setAside(position) }
        let four = ProgressMark(position: LogPosition(4), offset: 0)
        try await store.settle(SettledStep(from: .start, to: four))
        var retention = Retention()
        let none = try await store.prune(retention, at: Sample.moment(14), portion: 3)
        #expect(none.quarantined == 0)
        try await setAside(6)
        retention.quarantineBytes = 0
        let settled = try await store.prune(retention, at: Sample.moment(14), portion: 3)
        #expect(settled.quarantined == 4)
        #expect(try await store.backlog().quarantined == 2)
        #expect(try await store.positionsSetAside(after: .start).count == 2)
    }

    private static func accounts(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var step = SettledStep(from: .start, to: .start)
        step.deadLetters = [1, 2, 3].map { ProgressConformance.letter($0) }
        step.tallies[Sample.container] = DeliveryTally(owed: 4, delivered: 1)
        try await store.settle(step)
        _ = try await store.dropDeadLetters(
            [Sample.deliveryID(1)], of: Sample.container, reason: nil)
        _ = try await store.redriveDeadLetters(
            [Sample.deliveryID(2)], of: Sample.container, reason: nil, at: Sample.moment(9))
        let account = try await store.accounts().first { $0.container == Sample.container }
        let expected = DeliveryAccount(
            container: Sample.container, owed: 4, delivered: 1, pending: 1, deadLetters: 1,
            dropped: 1)
        #expect(account == expected)
        #expect(account?.difference == 0)
    }

    private static func backlog(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        #expect(try await store.backlog().retries == 0)
        var step = SettledStep(from: .start, to: .start)
        step.retries = [1, 2].map { ProgressConformance.retry($0, dueAt: 1) }
        try await store.settle(step)
        #expect(try await store.backlog().retries == 2)
        let counts = try await store.backlogOfContainers().first {
            $0.container == Sample.container
        }
        #expect(counts?.retries == 2 && counts?.rangeSubscriptions == 0)
        var end = SettledStep(from: .start, to: .start)
        end.endedRetries = [Sample.deliveryID(1)]
        try await store.settle(end)
        #expect(try await store.backlog().retries == 1)
    }

    private static func bounds(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        store.gate.set([.retries: "many wait"])
        await #expect(throws: StorageError.bounded(.retries, reason: "many wait")) {
            try await append(1, to: store)
        }
        #expect(store.gate.reached == [.retries: "many wait"])
        #expect(store.gate.refusals == [.retries: 1])
        store.gate.set([:])
        try await append(1, to: store)
        #expect(try await store.head() == LogPosition(1))
    }
}
