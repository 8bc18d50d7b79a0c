import Matching
import PredicateLanguage
import RelayModel
import Synchronization
import Testing

@Suite struct ConcurrencyTests {
    /// Saves and removes pairs of subscriptions as one edit; no reader may see half of a pair.
    @Test func `readers see each edit wholly or not at all while writers are active`() async throws
    {
        let index = SubscriptionIndex(seed: 3)
        let change = try Self.change()
        let pairs = try (0..<200).map { try Self.pair($0) }
        index.insert(contentsOf: pairs.joined())
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    for _ in 0..<500 {
                        let found = index.matches(for: change)
                        #expect(found == found.sorted())
                        #expect(found.allSatisfy { found.contains($0 ^ 1) })
                        await Task.yield()
                    }
                }
            }
            group.addTask {
                for round in 0..<30 {
                    for pair in pairs.dropFirst(round % 7) { index.insert(contentsOf: pair) }
                    _ = index.statistics
                    await Task.yield()
                }
            }
        }
        #expect(index.statistics.subscriptions == 400)
    }

    /// One writer saves 0, 1, 2 … and then removes them in the same order.
    ///
    /// So the saved serials at any moment are a range, both ends of which only rise.
    @Test func `a match is consistent with one moment between its start and its end`() async throws
    {
        let index = SubscriptionIndex(seed: 4)
        let change = try Self.change()
        let all = try (0..<600).map { try Self.any($0) }
        let (saved, removed) = (Moment(), Moment())
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    var last = 0..<0
                    while removed.number.load(ordering: .acquiring) < all.count {
                        let early = removed.number.load(ordering: .acquiring)
                        let least = saved.number.load(ordering: .acquiring)
                        let found = index.matches(for: change).map { Int($0) }
                        let most = saved.number.load(ordering: .acquiring) + 1
                        if let first = found.first, let end = found.last {
                            #expect(found == Array(first...end))
                            #expect(early <= first && least <= end + 1 && end < most)
                            #expect(last.lowerBound <= first && last.upperBound <= end + 1)
                            last = first..<end + 1
                        } else {
                            #expect(least == 0 || last.upperBound <= all.count)
                        }
                        await Task.yield()
                    }
                }
            }
            group.addTask {
                for one in all {
                    index.insert(one)
                    saved.number.add(1, ordering: .releasing)
                    await Task.yield()
                }
                for one in all {
                    index.remove(serial: one.serial)
                    removed.number.add(1, ordering: .releasing)
                    await Task.yield()
                }
            }
        }
        #expect(index.statistics.keys == 0)
    }

    /// The writer's progress.
    private final class Moment: Sendable {
        let number = Atomic<Int>(0)
    }

    /// Returns a subscription that fires on the change, with one of many kinds of key.
    private static func any(_ number: Int) throws -> IndexedSubscription {
        let formats = [
            "artist == 'a1'", "price < \(6 + number)",
            "price > 4.5 AND price < \(5.5 + Double(number))",
            "artist BEGINSWITH 'a'", "title CONTAINS 'needle'", "SELF CONTAINS 'Needle'",
            "artist ==[c] 'A1'", "title LIKE '*need?e*'",
            "artist == 'a1' AND price != \(number + 7)",
            "price + 1 == 6", "artist IN {'a1', 'b\(number)'}",
        ]
        return try subscription(number, formats[number % formats.count])
    }

    private static func subscription(
        _ serial: Int, _ format: String
    ) throws -> IndexedSubscription {
        IndexedSubscription(
            serial: UInt64(serial), database: .public,
            owner: try #require(UserID(rawValue: "ada")), recordType: RecordType(rawValue: "Art"),
            predicate: try RecordPredicate(format: format))
    }

    private static func change() throws -> RecordChange {
        let type = try #require(RecordType(rawValue: "Art"))
        let name = try #require(RecordName(rawValue: "r"))
        var change = RecordChange(.update, of: type, RecordID(recordName: name))
        change.after = RecordImage([
            "artist": .string("a1"), "price": .double(5), "title": .string("a needle in hay"),
        ])
        return change
    }

    /// Returns two subscriptions with adjacent serials and keys of different kinds.
    private static func pair(_ number: Int) throws -> [IndexedSubscription] {
        let formats = ["artist == 'a1'", "price < \(6 + number) AND artist BEGINSWITH 'a'"]
        return try formats.enumerated().map { offset, format in
            try subscription(number * 2 + offset, format)
        }
    }
}
