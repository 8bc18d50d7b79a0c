import Crypto
package import Matching
package import PredicateLanguage
package import RelayModel
import Synchronization

/// What the condition of a subscription weighs in its record type's account.
package struct ConditionWeight: Sendable, Hashable {
    /// Comparisons that it is expected to add to every change; 0 if it is found by a key that few
    /// changes have.
    var cost: Float
    /// Tells equal conditions, which the index evaluates once, from others.
    var condition: UInt64

    /// Whether it adds to the time of ordinary changes at all.
    package var isNoticeable: Bool { cost > 0 }

    /// A condition that weighs nothing.
    static let none = ConditionWeight(cost: 0, condition: 0)
}

extension ConditionWeight {
    /// Weighs a condition by what the index expects of it.
    init(_ cost: MatchingCost, of indexed: IndexedSubscription, in subscription: Subscription) {
        self.init(PredicateCost(cost, of: indexed.predicate), in: subscription)
    }

    /// Weighs a condition whose cost is known.
    package init(_ expected: PredicateCost, in subscription: Subscription) {
        self = .none
        guard expected.isNoticeable, case .query(let query, _) = subscription.scope else { return }
        self.cost = Float(expected.comparisonsPerChange)
        condition = Self.digest(query.canonical)
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

/// What the conditions of a container's subscriptions add to its ordinary changes, by record type.
///
/// Equal conditions count once, because the index evaluates them once. What a key finds that few
/// changes have does not count: those subscriptions cost the changes that they are about.
///
/// Concurrency: a lock; the follower writes, whoever saves reads.
package final class ConditionLedger: Sendable {
    private struct Account {
        var sum: Double = 0
        var uses: [UInt64: Int] = [:]
        /// What each user's conditions weigh, shared or not.
        var owners: [UserID: Double] = [:]
    }

    /// The accounts by record type; `nil` is for subscriptions to all.
    private let accounts = Mutex<[RecordType?: Account]>([:])

    /// Begins a ledger with nothing in it.
    init() {}

    /// Comparisons that changes of `recordType` are expected to cost beyond what they match.
    package func comparisonsPerChange(of recordType: RecordType?) -> Double {
        accounts.withLock { accounts in
            let common = accounts[nil]?.sum ?? 0
            guard let recordType else { return common }
            return common + (accounts[recordType]?.sum ?? 0)
        }
    }

    /// Comparisons that the conditions of one user are expected to add to changes of `recordType`.
    package func comparisonsPerChange(of recordType: RecordType?, by owner: UserID) -> Double {
        accounts.withLock { $0[recordType]?.owners[owner] ?? 0 }
    }

    /// Enters what the condition of `subscription` weighs.
    package func add(_ weight: ConditionWeight, of subscription: Subscription) {
        add(weight, of: subscription.owner, on: subscription.recordType)
    }

    /// Enters what the condition of somebody weighs, on records of a type.
    package func add(_ weight: ConditionWeight, of owner: UserID, on type: RecordType?) {
        guard weight.cost > 0 else { return }
        accounts.withLock { accounts in
            var account = accounts[type] ?? Account()
            accounts[type] = nil
            account.uses[weight.condition, default: 0] += 1
            account.owners[owner, default: 0] += Double(weight.cost)
            if account.uses[weight.condition] == 1 { account.sum += Double(weight.cost) }
            accounts[type] = account
        }
    }

    /// Takes out what the condition of `subscription` weighs.
    package func remove(_ weight: ConditionWeight, of subscription: Subscription) {
        remove(weight, of: subscription.owner, on: subscription.recordType)
    }

    /// Takes out what the condition of somebody weighs, on records of a type.
    package func remove(_ weight: ConditionWeight, of owner: UserID, on type: RecordType?) {
        guard weight.cost > 0 else { return }
        accounts.withLock { accounts in
            guard var account = accounts.removeValue(forKey: type),
                let uses = account.uses[weight.condition]
            else { return }
            account.uses[weight.condition] = uses > 1 ? uses - 1 : nil
            let left = account.owners[owner, default: 0] - Double(weight.cost)
            account.owners[owner] = left > 1e-6 ? left : nil
            if uses == 1 { account.sum -= Double(weight.cost) }
            if !account.uses.isEmpty { accounts[type] = account }
        }
    }
}
