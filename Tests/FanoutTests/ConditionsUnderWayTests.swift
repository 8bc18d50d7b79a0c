import Matching
import RelayModel
import RelayTestKit
import Testing

@testable import Fanout

/// Conditions that are being saved count until the follower has entered them, and no longer.
@Suite struct ConditionsUnderWayTests {
    private let underWay = ConditionsUnderWay()

    private static func entry(
        _ id: String, _ condition: String = "NOT price > 3"
    ) throws -> ConditionsUnderWay.Entry {
        let subscription = Fixtures.subscription(id, where: condition)
        let indexed = try IndexedSubscription(subscription, serial: 0)
        let cost = SubscriptionIndex(seed: 0).cost(of: indexed)
        return try #require(
            ConditionsUnderWay.Entry(subscription, PredicateCost(cost, of: indexed.predicate)))
    }

    /// Begins to save a condition.
    private func begin(
        _ id: String, _ condition: String = "NOT price > 3"
    ) throws -> ConditionsUnderWay.Entry {
        let entry = try Self.entry(id, condition)
        underWay.begin(entry, in: Fixtures.container)
        return entry
    }

    private func settle(_ entry: ConditionsUnderWay.Entry, at position: UInt64?) {
        underWay.settle(
            entry, savedAt: position.map { LogPosition($0) }, in: Fixtures.container)
    }

    /// The comparisons per change of all entries, as alice's account has them.
    private var weight: Double {
        underWay.costs(of: Fixtures.container)?.comparisonsPerChange(
            of: Fixtures.identifier("Artwork"), by: Fixtures.identifier("alice")) ?? 0
    }

    @Test func `a saved condition counts until the follower has entered it`() throws {
        let first = try begin("a")
        let second = try begin("b", "NOT price > 4")
        #expect(weight == 2)
        settle(first, at: 5)
        settle(second, at: 6)
        #expect(weight == 2)
        underWay.enter(LogPosition(5), of: Fixtures.container)
        #expect(weight == 1)
        underWay.enter(LogPosition(6), of: Fixtures.container)
        #expect(weight == 0)
    }

    @Test func `the follower may enter a condition before its save returns`() throws {
        let entry = try begin("a")
        underWay.enter(LogPosition(5), of: Fixtures.container)
        #expect(weight == 1)
        settle(entry, at: 5)
        #expect(weight == 0)
    }

    @Test func `a condition that was not saved counts no more`() throws {
        settle(try begin("a"), at: nil)
        #expect(weight == 0)
    }

    @Test func `a condition that is saved twice at the same time counts once`() throws {
        let first = try begin("a")
        #expect(underWay.growth(by: first, in: Fixtures.container) == 0)
        let second = try begin("a")
        #expect(weight == 1)
        settle(first, at: nil)
        #expect(weight == 1)
        settle(second, at: 5)
        #expect(weight == 1)
        let other = try Self.entry("a", "NOT price > 4 AND NOT size > 4")
        #expect(underWay.growth(by: other, in: Fixtures.container) == 1)
        underWay.enter(LogPosition(5), of: Fixtures.container)
        #expect(weight == 0)
        #expect(underWay.growth(by: other, in: Fixtures.container) == 2)
    }

    @Test func `the last version of a subscription counts, in whatever order it is reported`()
        throws
    {
        let first = try begin("a")
        settle(first, at: 5)
        let second = try begin("a", "NOT price > 4 AND NOT size > 4")
        #expect(underWay.former(of: second, in: Fixtures.container)?.comparisonsPerChange == 1)
        settle(second, at: 7)
        #expect(weight == 2)
        settle(try begin("a", "NOT price > 5"), at: 6)
        #expect(weight == 2)
        for position: UInt64 in 5...6 {
            underWay.enter(LogPosition(position), of: Fixtures.container)
        }
        #expect(weight == 2)
        underWay.enter(LogPosition(7), of: Fixtures.container)
        #expect(weight == 0)
        #expect(underWay.former(of: second, in: Fixtures.container) == nil)
    }

    @Test func `loading enters the conditions up to its position`() throws {
        settle(try begin("a"), at: 5)
        settle(try begin("b", "NOT price > 4"), at: 9)
        underWay.enterAll(upTo: LogPosition(8))
        #expect(weight == 1)
        underWay.enterAll(upTo: LogPosition(9))
        #expect(weight == 0)
    }
}
