import Matching
import PredicateLanguage
import RelayModel
import Testing

@Suite struct ConcurrencyTests {
    /// Pairs of subscriptions are saved and removed as one edit; no reader may see half of one.
    @Test func `readers see each edit wholly or not at all while writers go on`() async throws {
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

    private static func change() throws -> RecordChange {
        let type = try #require(RecordType(rawValue: "Art"))
        let name = try #require(RecordName(rawValue: "r"))
        var change = RecordChange(.update, of: type, RecordID(recordName: name))
        change.after = RecordImage(["artist": .string("a1"), "price": .double(5)])
        return change
    }

    /// Two subscriptions with serials that differ in the last bit and keys of different kinds.
    private static func pair(_ number: Int) throws -> [IndexedSubscription] {
        let type = try #require(RecordType(rawValue: "Art"))
        let owner = try #require(UserID(rawValue: "ada"))
        let formats = ["artist == 'a1'", "price < \(6 + number) AND artist BEGINSWITH 'a'"]
        return try formats.enumerated().map { offset, format in
            IndexedSubscription(
                serial: UInt64(number * 2 + offset), database: .public, owner: owner,
                recordType: type, predicate: try RecordPredicate(format: format))
        }
    }
}
