import Crypto
package import Matching
package import PredicateLanguage
package import RelayModel
import Synchronization

/// What the condition of a subscription weighs in its record type's account.
package struct ConditionWeight: Sendable, Hashable {
    /// Comparisons that it is expected to add to every change; 0 if it is found by a key that few
    /// changes have.
    package var cost: Float
    /// Tells equal conditions, which the index evaluates once, from others.
    package var condition: UInt64
    /// Bytes that it takes in memory; 0 if they are few.
    package var memory: UInt32

    /// Whether it adds to the time of ordinary changes, or takes much memory.
    package var isNoticeable: Bool { cost > 0 || memory > 0 }

    /// Bytes up to which a condition takes few: how many there may be of one user bounds those.
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
        // What asks for the record before is filed once more, to be judged on that.
        let bytes = subscription.firesWhen == .matches ? expected.memory : 2 * expected.memory
        if bytes > Self.fewBytes { memory = UInt32(clamping: bytes) }
        if expected.isNoticeable { cost = Float(expected.comparisonsPerChange) }
        if isNoticeable { condition = Self.digest(query.canonical) }
    }

    private static func digest(_ text: String) -> UInt64 {
        SHA256.hash(data: Array(text.utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// What a predicate is expected to cost, as saving answers it.
package struct PredicateCost: Sendable, Hashable {
    /// The share of its record type's changes for which it must be looked at, 0 to 1.
    package let candidatesPerChange: Double
    /// Comparisons that it is expected to add to a change of its record type.
    package let comparisonsPerChange: Double
    /// Whether it has no key of its own and is looked at for every change.
    package let isResidual: Bool
    /// What else is looked at wherever it is.
    package let crowd: Int
    /// Bytes that it takes in memory, each time that it is filed.
    package let memory: Int

    /// What a comparison counts for that only the reference evaluation can judge.
    private static let slowComparison = 8
    /// The share of changes from which on a predicate counts in its record type's account.
    private static let noticeable = 0.05
    /// The same beside so many others that together they would be noticed.
    private static let noticeableInCrowd = 0.001
    private static let crowded = 64

    /// Weighs `predicate` by what the index expects of it; `nil` asks nothing of fields.
    package init(_ cost: MatchingCost, of predicate: RecordPredicate?) {
        candidatesPerChange = cost.candidatesPerChange
        isResidual = cost.isResidual
        crowd = cost.crowd
        memory = ConditionRoom.bytes(of: predicate) + cost.unplaced * ConditionRoom.unplaced
        let comparisons = predicate.map { Self.comparisons(of: $0.root) } ?? 0
        comparisonsPerChange = cost.candidatesPerChange * Double(comparisons)
    }

    /// Whether it adds to the time of ordinary changes at all.
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

/// What the conditions of a container's subscriptions add to its ordinary changes, by record type,
/// and what those of them take in memory that take much.
///
/// Equal conditions count once, because the index evaluates them once. What a key finds that few
/// changes have does not count: those subscriptions cost the changes that they are about.
///
/// Concurrency: a lock; the follower writes, whoever saves reads.
package final class ConditionLedger: Sendable {
    /// One account, in comparisons of a change, or in bytes.
    private struct Account {
        var sum: Double = 0
        /// How often there is a condition, and what it added to the sum when it came.
        var uses: [UInt64: (count: Int, amount: Double)] = [:]
        /// What each user's conditions weigh, shared or not.
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

        /// What a condition would add in the place of `former`: to its user's account what it
        /// weighs more, to that of all nothing where there is an equal one.
        ///
        /// No more is freed than was entered: what `former` weighs now may be more, because others
        /// have come to stand where it stands.
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
        /// The accounts by record type; `nil` is for subscriptions to all.
        var costs: [RecordType?: Account] = [:]
        /// Bytes, whatever the record type.
        var memory = Account()
    }

    /// What a condition would add to an account of its user, and to that of all.
    package struct Growth: Sendable, Hashable {
        package var own: Double
        package var all: Double

        package init(own: Double, all: Double) {
            self.own = own
            self.all = all
        }
    }

    private let accounts = Mutex<Accounts>(Accounts())

    /// Begins a ledger with nothing in it.
    init() {}

    /// Comparisons that changes of `recordType` are expected to cost beyond what they match.
    package func comparisonsPerChange(of recordType: RecordType?) -> Double {
        accounts.withLock { accounts in
            let common = accounts.costs[nil]?.sum ?? 0
            guard let recordType else { return common }
            return common + (accounts.costs[recordType]?.sum ?? 0)
        }
    }

    /// Comparisons that the conditions of one user are expected to add to changes of `recordType`.
    package func comparisonsPerChange(of recordType: RecordType?, by owner: UserID) -> Double {
        accounts.withLock { $0.costs[recordType]?.owners[owner] ?? 0 }
    }

    /// Bytes that all conditions take in memory that take much.
    package var memory: Int { accounts.withLock { Int($0.memory.sum) } }

    /// The same of one user's conditions, shared with others or not.
    package func memory(of owner: UserID) -> Int {
        accounts.withLock { Int($0.memory.owners[owner] ?? 0) }
    }

    /// Comparisons that a condition would add to changes of `recordType`, in the place of one of
    /// the same user on that type.
    package func growth(
        by weight: ConditionWeight, insteadOf former: ConditionWeight, on recordType: RecordType?
    ) -> Growth {
        accounts.withLock { accounts in
            (accounts.costs[recordType] ?? Account()).growth(
                Double(weight.cost), weight.condition,
                insteadOf: (Double(former.cost), former.condition))
        }
    }

    /// Bytes that a condition would add, in the place of one of the same user.
    package func memoryGrowth(
        by weight: ConditionWeight, insteadOf former: ConditionWeight
    ) -> Growth {
        accounts.withLock { accounts in
            accounts.memory.growth(
                Double(weight.memory), weight.condition,
                insteadOf: (Double(former.memory), former.condition))
        }
    }

    /// Enters what the condition of `subscription` weighs.
    package func add(_ weight: ConditionWeight, of subscription: Subscription) {
        add(weight, of: subscription.owner, on: subscription.recordType)
    }

    /// Enters what the condition of somebody weighs, on records of a type.
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

    /// Takes out what the condition of `subscription` weighs.
    package func remove(_ weight: ConditionWeight, of subscription: Subscription) {
        remove(weight, of: subscription.owner, on: subscription.recordType)
    }

    /// Takes out what the condition of somebody weighs, on records of a type.
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
