import Matching
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Fanout

/// The memory of large conditions is accounted for each user and for all users.
@Suite struct ConditionMemoryTests {
    private static func heavy(_ name: String, _ count: Int = 100) -> String {
        (0..<count).map { "title LIKE[c] '\(name)\($0)'" }.joined(separator: " OR ")
    }

    private static func version(
        _ serial: UInt64, of owner: String, where condition: String,
        _ fill: (inout Subscription) -> Void = { _ in }
    ) -> SubscriptionVersion {
        var subscription = Fixtures.subscription("s\(serial)", of: owner, where: condition)
        fill(&subscription)
        return SubscriptionVersion(
            serial: serial, subscription: subscription, activation: LogPosition(serial))
    }

    private static func state() -> ContainerState {
        ContainerState(container: Fixtures.container, indexSeed: 1, badges: BadgeCounts())
    }

    private static let alice: UserID = Fixtures.identifier("alice")
    private static let bob: UserID = Fixtures.identifier("bob")

    @Test func `memory counts while a condition is active, once for equal ones, and in snapshots`()
        throws
    {
        var state = Self.state()
        try state.insert(Self.version(1, of: "alice", where: "price == 1"))
        #expect(state.costs.memory == 0)
        try state.insert(Self.version(2, of: "alice", where: Self.heavy("a")))
        let one = state.costs.memory
        #expect(one > 100_000 && one < 1_000_000)
        try state.insert(Self.version(3, of: "bob", where: Self.heavy("a")))
        #expect(state.costs.memory == one)
        #expect(state.costs.memory(of: Self.alice) == one)
        #expect(state.costs.memory(of: Self.bob) == one)
        let image = try state.image()
        var parts = [image.index, image.updateRules, image.subscriptions, image.devices][...]
        var copy = try ContainerState(container: Fixtures.container, badges: BadgeCounts()) {
            let part = parts.popFirst()
            return try #require(part)
        }
        #expect(copy.costs.memory == one)
        #expect(copy.costs.memory(of: Self.bob) == one)
        copy.removeSubscription(2)
        #expect(copy.costs.memory == one)
        #expect(copy.costs.memory(of: Self.alice) == 0)
        copy.removeSubscription(3)
        #expect(copy.costs.memory == 0)
    }

    /// The condition is filed a second time, to be judged on the record before the change.
    @Test func `a condition that also reads the former record takes twice the memory`() throws {
        var (once, twice) = (Self.state(), Self.state())
        try once.insert(Self.version(1, of: "alice", where: Self.heavy("a")))
        try twice.insert(
            Self.version(1, of: "alice", where: Self.heavy("a")) { $0.firesWhen = .entered })
        #expect(twice.costs.memory == 2 * once.costs.memory)
    }

    @Test func `a condition that is being saved counts until the follower has it`() throws {
        let underWay = ConditionsUnderWay()
        func entry(_ id: String, _ condition: String) throws -> ConditionsUnderWay.Entry? {
            let subscription = Fixtures.subscription(id, where: condition)
            let indexed = try IndexedSubscription(subscription, serial: 0)
            let cost = SubscriptionIndex(seed: 0).cost(of: indexed)
            return ConditionsUnderWay.Entry(
                subscription, PredicateCost(cost, of: indexed.predicate))
        }
        // A small condition that is found by a key weighs nothing.
        let key = "title == 'a title of its own'"
        #expect(try entry("a", key) == nil)
        let condition = "\(key) AND (\(Self.heavy("a")))"
        let first = try #require(try entry("a", condition))
        #expect(first.comparisonsPerChange == 0)
        #expect(underWay.memoryGrowth(by: first, in: Fixtures.container) == first.memory)
        underWay.begin(first, in: Fixtures.container)
        #expect(underWay.memoryGrowth(by: first, in: Fixtures.container) == 0)
        #expect(underWay.costs(of: Fixtures.container)?.memory(of: Self.alice) == first.memory)
        underWay.settle(first, savedAt: LogPosition(5), in: Fixtures.container)
        let larger = try #require(
            try entry("a", "\(key) AND (\(Self.heavy("a", 150)))"))
        #expect(
            underWay.memoryGrowth(by: larger, in: Fixtures.container)
                == larger.memory - first.memory)
        underWay.enter(LogPosition(5), of: Fixtures.container)
        #expect(underWay.costs(of: Fixtures.container)?.memory == 0)
    }
}
