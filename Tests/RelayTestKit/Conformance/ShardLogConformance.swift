import RelayModel
import Storage
import Testing

/// The contract of ``Storage/ShardLog``.
package enum ShardLogConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase("an empty log has no entry and its head at the start", check: emptyLog),
        ConformanceCase("positions are gap-free and begin with 1", check: gapFree),
        ConformanceCase("entries read as they were appended, also after a restart", check: entries),
        ConformanceCase("a known dedupe key returns the first position", check: duplicates),
        ConformanceCase(
            "a repeated delivery with other contents appends nothing", check: deliveries),
        ConformanceCase(
            "a dedupe key counts within its container and source only", check: keySpaces),
        ConformanceCase("a dedupe key is forgotten when its window has passed", check: windows),
        ConformanceCase(
            "a content key is forgotten once another content of its record comes",
            check: lastContents),
        ConformanceCase("an older version of a record is stale", check: stale),
        ConformanceCase("an unknown container is refused", check: unknownContainer),
        ConformanceCase("concurrent appends share positions without gaps", check: concurrent),
        ConformanceCase(
            "a dedupe key that is appended concurrently is appended once", check: racingKeys),
        ConformanceCase("waiting ends when the log grows, and not before", check: growth),
        ConformanceCase("waiting ends when it is cancelled", check: cancellation),
    ]

    static func emptyLog(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        #expect(try await store.head() == .start)
        #expect(try await store.entries(after: .start, limit: 10) == [])
        #expect(try await store.mark() == .start)
    }

    static func gapFree(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let first = try await append([Sample.unkeyed("a"), Sample.unkeyed("b")], to: store)
        let second = try await append([Sample.unkeyed("c")], to: store)
        #expect(first == [.appended(LogPosition(1)), .appended(LogPosition(2))])
        #expect(second == [.appended(LogPosition(3))])
        #expect(try await append([], to: store) == [])
        #expect(try await store.head() == LogPosition(3))
    }

    static func entries(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let changes = (1...5).map { Sample.change("record-\($0)", version: Int64($0)) }
        _ = try await append(changes.map { ChangeToAppend($0, key: nil) }, to: store)
        let expected = changes.enumerated().map { index, change in
            LogEntry(
                position: LogPosition(UInt64(index + 1)), appendedAt: Sample.moment(9),
                container: Sample.container,
                body: .change(change, source: Sample.source, isStale: false),
                continuesRequest: index > 0)
        }
        #expect(try await store.entries(after: .start, limit: 10) == expected)
        let reopened = try await factory.reopen(store)
        #expect(try await reopened.entries(after: .start, limit: 10) == expected)
        #expect(
            try await reopened.entries(after: LogPosition(2), limit: 2) == Array(expected[2...3]))
        #expect(try await reopened.entries(after: LogPosition(5), limit: 2) == [])
        #expect(try await reopened.head() == LogPosition(5))
    }

    static func duplicates(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let outcomes = try await append(
            [
                Sample.keyed("a", .position, "1"), Sample.keyed("a", .position, "1"),
                Sample.keyed("b", .position, "1", digest: 2), Sample.keyed("c", .position, "2"),
                Sample.keyed("d", .delivery, "1", digest: 3),
            ], to: store)
        #expect(
            outcomes == [
                .appended(LogPosition(1)), .duplicate(LogPosition(1)), .conflict(LogPosition(1)),
                .appended(LogPosition(2)), .appended(LogPosition(3)),
            ])
        let reopened = try await factory.reopen(store)
        let again = try await append([Sample.keyed("a", .position, "1")], to: reopened)
        #expect(again == [.duplicate(LogPosition(1))])
        let nul = try await append(
            [Sample.keyed("n", .delivery, "x\0a"), Sample.keyed("n", .delivery, "x\0b")],
            to: reopened)
        #expect(nul == [.appended(LogPosition(4)), .appended(LogPosition(5))])
    }

    static func deliveries(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        func post(_ names: [String], of places: UInt8) async throws -> [AppendOutcome] {
            try await store.append(
                names.map { Sample.keyed($0, .delivery, "m#\($0)") },
                delivery: DedupeKey(kind: .delivery, text: "m", digest: [places]),
                container: Sample.container, source: Sample.source, at: Sample.moment(0))
        }
        let (first, second) = (LogPosition(1), LogPosition(2))
        #expect(try await post(["a", "b"], of: 2) == [.appended(first), .appended(second)])
        #expect(
            try await post(["a", "b", "c"], of: 3)
                == [.conflict(first), .conflict(first), .conflict(first)])
        #expect(try await post(["a"], of: 1) == [.conflict(first)])
        #expect(try await post(["a", "b"], of: 2) == [.duplicate(first), .duplicate(second)])
        #expect(try await store.head() == second)
        let alone = Sample.keyed("a", .delivery, "m")
        #expect(try await append([alone], to: store) == [.conflict(first)])
    }

    static func keySpaces(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let change = Sample.keyed("a", .position, "1")
        _ = try await append([change], to: store)
        let other = try await store.append(
            [change], container: Sample.otherContainer, source: Sample.source,
            at: Sample.moment(9))
        #expect(other == [.appended(LogPosition(2))])
        let otherSource = try await store.append(
            [change], container: Sample.container, source: Sample.identifier("mysql"),
            at: Sample.moment(9))
        #expect(otherSource == [.appended(LogPosition(3))])
    }

    static func windows(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let changes = [Sample.keyed("a", .content, "1"), Sample.keyed("b", .position, "1")]
        let positions = (1...3).map { LogPosition($0) }
        #expect(
            try await append(changes, to: store, at: 0)
                == [.appended(positions[0]), .appended(positions[1])])
        #expect(
            try await append(changes, to: store, at: 59)
                == [.duplicate(positions[0]), .duplicate(positions[1])])
        #expect(
            try await append(changes, to: store, at: 60)
                == [.appended(positions[2]), .duplicate(positions[1])])
        #expect(
            try await append([changes[1]], to: store, at: 72 * 3600)
                == [.appended(LogPosition(4))])
    }

    /// A content key is news again once another content came between: a record may change back.
    static func lastContents(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let set = Sample.keyed("a", .content, "a", digest: 1)
        let takenBack = Sample.keyed("a", .content, "a", digest: 2)
        let outcomes = try await append([set, set, takenBack, takenBack, set, set], to: store)
        let positions = (1...3).map { LogPosition($0) }
        #expect(
            outcomes == [
                .appended(positions[0]), .duplicate(positions[0]), .appended(positions[1]),
                .duplicate(positions[1]), .appended(positions[2]), .duplicate(positions[2]),
            ])
        #expect(
            try await append([set, takenBack], to: store, at: 59)
                == [.duplicate(positions[2]), .appended(LogPosition(4))])
    }

    static func stale(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let outcomes = try await append(
            [
                Sample.unkeyed("a", version: 5), Sample.unkeyed("a", version: 4),
                Sample.unkeyed("b", version: 1), Sample.unkeyed("a", version: 5),
                Sample.unkeyed("a"), Sample.unkeyed("a", version: 6),
            ], to: store)
        #expect(
            outcomes == [
                .appended(LogPosition(1)), .appendedAsStale(LogPosition(2)),
                .appended(LogPosition(3)), .appended(LogPosition(4)), .appended(LogPosition(5)),
                .appended(LogPosition(6)),
            ])
        let reopened = try await factory.reopen(store)
        let late = try await append([Sample.unkeyed("a", version: 3)], to: reopened)
        #expect(late == [.appendedAsStale(LogPosition(7))])
        let entry = try await factory.reopen(reopened).entries(after: LogPosition(6), limit: 1)
        #expect(
            entry.map(\.body) == [
                .change(Sample.change("a", version: 3), source: Sample.source, isStale: true)
            ])
    }

    static func unknownContainer(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let key = Sample.key("iCloud.com.example.Nowhere")
        await #expect(throws: StorageError.unknownContainer(key)) {
            try await store.append(
                [Sample.unkeyed("a")], container: key, source: Sample.source, at: Sample.moment(0))
        }
        #expect(try await store.head() == .start)
    }

    static func concurrent(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let positions = try await withThrowingTaskGroup(of: [AppendOutcome].self) { group in
            for task in 0..<40 {
                group.addTask {
                    var outcomes: [AppendOutcome] = []
                    for number in 0..<5 {
                        outcomes += try await append(
                            [Sample.unkeyed("\(task)-\(number)"), Sample.unkeyed("\(task)")],
                            to: store)
                    }
                    return outcomes
                }
            }
            var positions: [LogPosition] = []
            for try await outcomes in group {
                let own = outcomes.compactMap(\.appendedPosition)
                // The changes of one caller keep their order, and those of one request are
                // neighbours.
                #expect(own == own.sorted())
                #expect(own.count == 10)
                positions += own
            }
            return positions
        }
        #expect(positions.sorted() == (1...400).map { LogPosition($0) })
        let entries = try await store.entries(after: .start, limit: 1000)
        #expect(entries.map(\.position) == (1...400).map { LogPosition($0) })
    }

    static func racingKeys(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let outcomes = try await withThrowingTaskGroup(of: AppendOutcome.self) { group in
            for _ in 0..<64 {
                group.addTask {
                    try await append([Sample.keyed("a", .delivery, "same")], to: store)[0]
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.count { $0 == .appended(LogPosition(1)) } == 1)
        #expect(outcomes.count { $0 == .duplicate(LogPosition(1)) } == 63)
        #expect(try await store.head() == LogPosition(1))
    }

    static func growth(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        try await withThrowingTaskGroup(of: LogPosition.self) { group in
            for position in [LogPosition.start, LogPosition(1), LogPosition(1)] {
                group.addTask {
                    try await store.waitForGrowth(beyond: position)
                    return try await store.head()
                }
            }
            _ = try await append([Sample.unkeyed("a")], to: store)
            _ = try await append([Sample.unkeyed("b")], to: store)
            for try await head in group { #expect(head >= LogPosition(1)) }
        }
        try await store.waitForGrowth(beyond: LogPosition(1))
    }

    static func cancellation(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let waiting = Task { try await store.waitForGrowth(beyond: LogPosition(7)) }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    static func append(
        _ changes: [ChangeToAppend], to store: any ConformingStore, at seconds: Int64 = 9
    ) async throws -> [AppendOutcome] {
        try await store.append(
            changes, container: Sample.container, source: Sample.source,
            at: Sample.moment(seconds))
    }
}

extension AppendOutcome {
    /// The position, if the change was appended.
    var appendedPosition: LogPosition? {
        if case .appended(let position) = self { position } else { nil }
    }
}
