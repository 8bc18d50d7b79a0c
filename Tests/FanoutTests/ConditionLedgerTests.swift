import RelayModel
import RelayTestKit
import Testing

@testable import Fanout

/// The growth of the accounts when a condition replaces another one.
@Suite struct ConditionLedgerTests {
    private static let type: RecordType = Fixtures.identifier("Artwork")
    private static let alice: UserID = Fixtures.identifier("alice")
    private static let bob: UserID = Fixtures.identifier("bob")

    private static func weight(_ cost: Float, _ condition: UInt64) -> ConditionWeight {
        ConditionWeight(cost: cost, condition: condition, memory: UInt32(cost) * 1000)
    }

    private static func expect(
        _ weight: ConditionWeight, insteadOf former: ConditionWeight, own: Double, all: Double,
        in ledger: ConditionLedger, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let costs = ledger.growth(by: weight, insteadOf: former, on: type)
        #expect(
            costs == ConditionLedger.Growth(own: own, all: all), sourceLocation: sourceLocation)
        let memory = ledger.memoryGrowth(by: weight, insteadOf: former)
        #expect(
            memory == ConditionLedger.Growth(own: 1000 * own, all: 1000 * all),
            sourceLocation: sourceLocation)
    }

    @Test func `a replacement adds only the additional weight`() {
        let ledger = ConditionLedger()
        ledger.add(Self.weight(3, 1), of: Self.alice, on: Self.type)
        ledger.add(Self.weight(2, 2), of: Self.bob, on: Self.type)
        let (former, other) = (Self.weight(3, 1), Self.weight(5, 3))
        Self.expect(other, insteadOf: .none, own: 5, all: 5, in: ledger)
        Self.expect(other, insteadOf: former, own: 2, all: 2, in: ledger)
        // An equal condition is already in the account of all.
        Self.expect(Self.weight(2, 2), insteadOf: former, own: -1, all: 0, in: ledger)
        // Replacing a condition that others have too frees nothing in the account of all.
        ledger.add(former, of: Self.bob, on: Self.type)
        Self.expect(other, insteadOf: former, own: 2, all: 5, in: ledger)
    }

    @Test func `a replacement frees no more than was entered`() {
        let ledger = ConditionLedger()
        ledger.add(Self.weight(1, 1), of: Self.alice, on: Self.type)
        // The condition was entered with weight 1, but would weigh 300 now that many others stand
        // beside it.
        let heavy = Self.weight(300, 3)
        Self.expect(heavy, insteadOf: Self.weight(300, 1), own: 299, all: 299, in: ledger)
        // This condition is in no account yet.
        Self.expect(heavy, insteadOf: Self.weight(300, 2), own: 300, all: 300, in: ledger)
    }
}
