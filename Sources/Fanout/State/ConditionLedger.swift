import Crypto
package import Matching
package import PredicateLanguage
package import RelayModel
import Synchronization

/// The cost of a subscription's condition in the account of its record type.
package struct ConditionWeight: Sendable, Hashable {
    /// The number of comparisons that it is expected to add to every change.
    ///
    /// It is 0 if the condition is found by a key that few changes have.
    package var cost: Float
    /// A digest that tells equal conditions, which the index evaluates once, from different ones.
    package var condition: UInt64
    /// The bytes that it takes in memory.
    ///
    /// It is 0 if these are few.
    package var memory: UInt32

    /// Whether it adds to the time of ordinary changes, or takes much memory.
    package var isNoticeable: Bool { cost > 0 || memory > 0 }

    /// The number of bytes up to which a condition counts as small.
    ///
    /// The number of subscriptions of a user bounds how many small ones there can be.
    package static let fewBytes = 4096

    /// A condition that weighs nothing.
    package static let none = ConditionWeight(cost: 0, condition: 0, memory: 0)
}

extension ConditionWeight {
    /// Weighs a condition by what the index expects of it.
    init(_ cost: MatchingCost, of indexed: IndexedSubscription, in subscription: Subscription) {
        self.init(PredicateCost(cost, of: indexed.predicate), in: subscription)
    }

    /// Weighs a condition whose cost is known.
    package init(_ expected: PredicateCost, in subscription: Subscription) {
        self = .none
        guard case .query(let query, _) = subscription.scope else { return }
        // A condition that is also judged on the record before the change is filed twice.
        let bytes = subscription.firesWhen == .matches ? expected.memory : 2 * expected.memory
        if bytes > Self.fewBytes { memory = UInt32(clamping: bytes) }
        if expected.isNoticeable { cost = Float(expected.comparisonsPerChange) }
        if isNoticeable { condition = Self.digest(query.canonical) }
    }

    private static func digest(_ text: String) -> UInt64 {
        SHA256.hash(data: Array(text.utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// The expected cost of a predicate, as the answer to a save reports it.
package struct PredicateCost: Sendable, Hashable {
    /// The share of its record type's changes for which the predicate must be evaluated, from 0 to
    /// 1.
    package let candidatesPerChange: Double
    /// The number of comparisons that it is expected to add to a change of its record type.
    package let comparisonsPerChange: Double
    /// Whether it has no key of its own, and is evaluated for every change.
    package let isResidual: Bool
    /// The number of other conditions that are evaluated wherever this one is.
    package let crowd: Int
    /// The weighted number of comparisons of one evaluation.
    package let comparisons: Int
    /// Whether it is evaluated only where the condition that it replaces is, so that an edit adds
    /// no evaluations.
    package let isInPlace: Bool
    /// The bytes that it takes in memory each time it is filed.
    package let memory: Int

    /// The number of comparisons that count for one that only the reference evaluation can judge.
    private static let slowComparison = 8
    /// The share of changes from which on a predicate counts in its record type's account.
    private static let noticeable = 0.05
    /// The share for a predicate that is beside so many others that together they would be
    /// noticeable.
    private static let noticeableInCrowd = 0.001
    private static let crowded = 64

    /// Weighs `predicate` by what the index expects of it.
    ///
    /// `nil` is a predicate without conditions on fields.
    package init(_ cost: MatchingCost, of predicate: RecordPredicate?) {
        candidatesPerChange = cost.candidatesPerChange
        isResidual = cost.isResidual
        crowd = cost.crowd
        isInPlace = cost.isInPlace
        memory = ConditionRoom.bytes(of: predicate) + cost.unplaced * ConditionRoom.unplaced
        comparisons = predicate.map { Self.comparisons(of: $0.root) } ?? 0
        comparisonsPerChange = cost.candidatesPerChange * Double(comparisons)
    }

    /// Whether it adds noticeably to the time of ordinary changes.
    package var isNoticeable: Bool {
        let least = crowd < Self.crowded ? Self.noticeable : Self.noticeableInCrowd
        return candidatesPerChange >= least && comparisonsPerChange > 0
    }

    private static func comparisons(of node: RecordPredicate.Node) -> Int {
        switch node {
        case .constant: 0
        case .not(let inner): comparisons(of: inner)
        case .and(let members), .or(let members):
            members.reduce(0) { $0 + comparisons(of: $1) }
        case .comparison(let comparison): weight(of: comparison)
        }
    }

    private static func weight(of comparison: RecordPredicate.Comparison) -> Int {
        if let price = comparison.nestingPrice { return price }
        switch comparison.comparator {
        case .like, .matches, .tokenMatches, .geoWithin: return slowComparison
        default: break
        }
        guard case .path = comparison.left, case .constant = comparison.right else {
            return slowComparison
        }
        return comparison.options.isEmpty ? 1 : slowComparison
    }
}

/// The accounts of a container's conditions: what they add to its ordinary changes, by record type,
/// and the memory of those that take much.
///
/// Equal conditions count once, because the index evaluates them once. Conditions that are found by
/// a key that few changes have do not count: they only cost the changes that they are about.
///
/// Concurrency: a lock. The follower writes, and requests that save subscriptions read.
package final class ConditionLedger: Sendable {
    /// One account, in comparisons for each change, or in bytes.
    private struct Account {
        var sum: Double = 0
        /// For each condition, how often it is entered, and the amount that it added to the sum
        /// when it was entered first.
        var uses: [UInt64: (count: Int, amount: Double)] = [:]
        /// The weight of each user's conditions, whether they are shared or not.
        var owners: [UserID: Double] = [:]

        mutating func add(_ amount: Double, _ condition: UInt64, of owner: UserID) {
            owners[owner, default: 0] += amount
            if let use = uses[condition] {
                uses[condition] = (use.count + 1, use.amount)
                return
            }
            uses[condition] = (1, amount)
            sum += amount
        }

        /// Returns what a condition would add in the place of `former`.
        ///
        /// To its user's account it adds the difference of the weights. To the total it adds
        /// nothing if an equal condition is entered.
        ///
        /// No more is freed than was entered: the weight of `former` may be more by now, because
        /// others have been filed beside it.
        func growth(
            _ amount: Double, _ condition: UInt64,
            insteadOf former: (amount: Double, condition: UInt64)
        ) -> ConditionLedger.Growth {
            let entered = uses[former.condition]
            let own = amount - min(former.amount, entered?.amount ?? 0)
            guard uses[condition] == nil else { return ConditionLedger.Growth(own: own, all: 0) }
            let freed = entered.map { $0.count == 1 ? $0.amount : 0 } ?? 0
            return ConditionLedger.Growth(own: own, all: amount - freed)
        }

        mutating func remove(_ amount: Double, _ condition: UInt64, of owner: UserID) {
            guard let use = uses[condition] else { return }
            let left = owners[owner, default: 0] - amount
            owners[owner] = left > 1e-6 ? left : nil
            guard use.count == 1 else {
                uses[condition] = (use.count - 1, use.amount)
                return
            }
            uses[condition] = nil
            sum -= use.amount
        }
    }

    private struct Accounts {
        /// The accounts by record type.
        ///
        /// `nil` is the account of subscriptions to all record types.
        var costs: [RecordType?: Account] = [:]
        /// The account of bytes, regardless of the record type.
        var memory = Account()
    }

    /// What a condition would add to its user's account, and to the total.
    package struct Growth: Sendable, Hashable {
        package var own: Double
        package var all: Double

        package init(own: Double, all: Double) {
            self.own = own
            self.all = all
        }
    }

    private let accounts = Mutex<Accounts>(Accounts())

    /// Creates a ledger in which nothing is entered yet.
    init() {}

    /// Returns the comparisons that changes of `recordType` are expected to cost beyond what they
    /// match.
    package func comparisonsPerChange(of recordType: RecordType?) -> Double {
        accounts.withLock { accounts in
            let common = accounts.costs[nil]?.sum ?? 0
            guard let recordType else { return common }
            return common + (accounts.costs[recordType]?.sum ?? 0)
        }
    }

    /// Returns the comparisons that the conditions of one user are expected to add to changes of
    /// `recordType`.
    package func comparisonsPerChange(of recordType: RecordType?, by owner: UserID) -> Double {
        accounts.withLock { $0.costs[recordType]?.owners[owner] ?? 0 }
    }

    /// The bytes of all conditions that take much memory.
    package var memory: Int { accounts.withLock { Int($0.memory.sum) } }

    /// Returns the bytes of one user's conditions that take much memory, shared with others or not.
    package func memory(of owner: UserID) -> Int {
        accounts.withLock { Int($0.memory.owners[owner] ?? 0) }
    }

    /// Returns the comparisons that a condition would add to changes of `recordType`, in the place
    /// of another condition of the same user on that type.
    package func growth(
        by weight: ConditionWeight, insteadOf former: ConditionWeight, on recordType: RecordType?
    ) -> Growth {
        accounts.withLock { accounts in
            (accounts.costs[recordType] ?? Account()).growth(
                Double(weight.cost), weight.condition,
                insteadOf: (Double(former.cost), former.condition))
        }
    }

    /// Returns the bytes that a condition would add, in the place of another one of the same user.
    package func memoryGrowth(
        by weight: ConditionWeight, insteadOf former: ConditionWeight
    ) -> Growth {
        accounts.withLock { accounts in
            accounts.memory.growth(
                Double(weight.memory), weight.condition,
                insteadOf: (Double(former.memory), former.condition))
        }
    }

    /// Enters the weight of the condition of `subscription`.
    package func add(_ weight: ConditionWeight, of subscription: Subscription) {
        add(weight, of: subscription.owner, on: subscription.recordType)
    }

    /// Enters the weight of a condition of `owner` on records of a type.
    package func add(_ weight: ConditionWeight, of owner: UserID, on type: RecordType?) {
        guard weight.isNoticeable else { return }
        accounts.withLock { accounts in
            if weight.memory > 0 {
                accounts.memory.add(Double(weight.memory), weight.condition, of: owner)
            }
            guard weight.cost > 0 else { return }
            accounts.costs[type, default: Account()].add(
                Double(weight.cost), weight.condition, of: owner)
        }
    }

    /// Removes the weight of the condition of `subscription`.
    package func remove(_ weight: ConditionWeight, of subscription: Subscription) {
        remove(weight, of: subscription.owner, on: subscription.recordType)
    }

    /// Removes the weight of a condition of `owner` on records of a type.
    package func remove(_ weight: ConditionWeight, of owner: UserID, on type: RecordType?) {
        guard weight.isNoticeable else { return }
        accounts.withLock { accounts in
            if weight.memory > 0 {
                accounts.memory.remove(Double(weight.memory), weight.condition, of: owner)
            }
            guard weight.cost > 0, var account = accounts.costs.removeValue(forKey: type) else {
                return
            }
            account.remove(Double(weight.cost), weight.condition, of: owner)
            if !account.uses.isEmpty { accounts.costs[type] = account }
        }
    }
}
