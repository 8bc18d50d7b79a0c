import Fanout
import Matching
import RelayModel
import Storage

/// Computes what a subscription's predicate would cost every change of its record type, and its
/// memory, and refuses what exceeds the limits.
///
/// The accounts contain a saved condition only once the follower has it. Conditions that are being
/// saved are held to the same limits by themselves (``begin(_:costing:path:)``), so both together
/// exceed a limit at most twofold.
struct PredicateScales: Sendable {
    let indexes: IndexDirectory
    let limits: CostLimits

    /// Returns the cost of the predicate of `subscription`; what is charged already is not checked
    /// again.
    ///
    /// - Throws: 400 that names the limit that would be exceeded, or the error of parsing the
    ///   predicate.
    func weigh(
        _ subscription: Subscription, path: String,
        isCharged: (PredicateCost) -> Bool = { _ in false }
    ) throws -> PredicateCost {
        let cost = try cost(of: subscription)
        let weight = ConditionWeight(cost, in: subscription)
        guard weight.isNoticeable, !isCharged(cost) else { return cost }
        let growth = Growth(
            costs: .init(own: cost.comparisonsPerChange, all: cost.comparisonsPerChange),
            memory: .init(own: Double(weight.memory), all: Double(weight.memory)))
        if cost.isNoticeable { try check(cost, growth.costs, of: subscription, path: path) }
        if weight.memory > 0 { try checkMemory(growth.memory, of: subscription, path: path) }
        return cost
    }

    /// Returns the cost of the predicate of `subscription`, which is being saved, in place of
    /// `former` if that is given; only the growth is checked.
    ///
    /// A condition that is looked at only where `former` was, and takes no more comparisons, makes
    /// no change more expensive. It is admitted regardless of the limits, even if other conditions
    /// have been filed in that place since.
    ///
    /// - Throws: As ``weigh(_:path:isCharged:)``.
    func weigh(
        saved subscription: Subscription, insteadOf former: SubscriptionVersion?, path: String
    ) throws -> Weighed {
        let replaced = former.flatMap {
            $0.subscription.recordType == subscription.recordType ? $0 : nil
        }
        let cost = try cost(of: subscription, insteadOf: replaced?.serial)
        let weight = ConditionWeight(cost, in: subscription)
        guard weight.isNoticeable else { return Weighed(cost: cost) }
        var (before, isNoDearer) = (ConditionWeight.none, false)
        // A former condition that cannot be parsed any more is in no account, and saving repairs
        // it. Its cost is computed without itself; as an additional equal condition it would cost
        // nothing.
        if let replaced,
            let former = try? self.cost(of: replaced.subscription, insteadOf: replaced.serial)
        {
            before = ConditionWeight(former, in: replaced.subscription)
            // An equal condition can cost more than before if it moves to another zone.
            isNoDearer =
                before.condition == weight.condition && weight.cost <= before.cost
                || cost.isInPlace && cost.comparisons <= former.comparisons
        }
        if isNoDearer, weight.memory <= before.memory {
            return Weighed(cost: cost, isNoDearer: true)
        }
        let growth = growth(by: weight, insteadOf: before, in: subscription)
        if cost.isNoticeable, !isNoDearer {
            try check(cost, growth.costs, of: subscription, path: path)
        }
        if weight.memory > 0 { try checkMemory(growth.memory, of: subscription, path: path) }
        return Weighed(cost: cost)
    }

    /// The result of checking a condition that is being saved.
    struct Weighed: Sendable {
        let cost: PredicateCost
        /// Whether it costs no more than the condition that it replaces.
        var isNoDearer = false
    }

    /// What a condition adds to the accounts of saved conditions.
    private struct Growth {
        var costs: ConditionLedger.Growth
        var memory: ConditionLedger.Growth
    }

    private func growth(
        by weight: ConditionWeight, insteadOf former: ConditionWeight, in subscription: Subscription
    ) -> Growth {
        let (cost, memory) = (Double(weight.cost), Double(weight.memory))
        guard let ledger = indexes.costs(of: subscription.container) else {
            return Growth(
                costs: .init(own: cost, all: cost), memory: .init(own: memory, all: memory))
        }
        return Growth(
            costs: ledger.growth(by: weight, insteadOf: former, on: subscription.recordType),
            memory: ledger.memoryGrowth(by: weight, insteadOf: former))
    }

    private func cost(
        of subscription: Subscription, insteadOf former: UInt64? = nil
    ) throws -> PredicateCost {
        let index = indexes.index(of: subscription.container) ?? indexes.empty
        let indexed = try IndexedSubscription(subscription, serial: 0)
        return PredicateCost(
            index.cost(of: indexed, insteadOf: former), of: indexed.predicate)
    }

    /// Counts a condition among those that are being saved, until its outcome is known.
    ///
    /// It is not added to the saved ones, because a client that saves all of its subscriptions
    /// again, as some do at each start, would have them in both. A condition that costs no more
    /// than the one it replaces is counted, but always admitted.
    ///
    /// - Returns: The entry to settle; `nil` if the condition weighs nothing.
    /// - Throws: 400 that names the limit that would be exceeded.
    func begin(
        _ subscription: Subscription, costing weighed: Weighed, path: String
    ) throws -> ConditionsUnderWay.Entry? {
        guard let entry = ConditionsUnderWay.Entry(subscription, weighed.cost) else { return nil }
        let (underWay, container) = (indexes.underWay, subscription.container)
        if !weighed.isNoDearer { try checkUnderWay(entry, subscription, path) }
        underWay.begin(entry, in: container)
        return entry
    }

    private func checkUnderWay(
        _ entry: ConditionsUnderWay.Entry, _ subscription: Subscription, _ path: String
    ) throws {
        let (underWay, container) = (indexes.underWay, subscription.container)
        let growth = underWay.growth(by: entry, in: container)
        if growth > 0, let costs = underWay.costs(of: container) {
            let type = subscription.recordType
            try check(
                growth + costs.comparisonsPerChange(of: type, by: subscription.owner),
                limits.perUser, path, "the predicates that one user is saving", "limits.userCost")
            try check(
                growth + costs.comparisonsPerChange(of: type), limits.perRecordType, path,
                "all predicates that are being saved for a record type", "limits.recordTypeCost")
        }
        let bytes = underWay.memoryGrowth(by: entry, in: container)
        if bytes > 0, let costs = underWay.costs(of: container) {
            try checkMemory(
                bytes + costs.memory(of: subscription.owner), all: bytes + costs.memory, path)
        }
    }

    private func check(
        _ cost: PredicateCost, _ growth: ConditionLedger.Growth, of subscription: Subscription,
        path: String
    ) throws {
        try check(
            cost.comparisonsPerChange, limits.perPredicate, path, "one predicate",
            "limits.predicateCost")
        // This holds regardless of growth and expected hits: a change with the value pays for all
        // conditions verified under it. Equal conditions do not add to the crowd.
        try check(
            Double(cost.crowd + 1), limits.perRecordType, path,
            "the predicates that compare with the same value", "limits.recordTypeCost")
        // Saved conditions and those of connected clients share the same limits.
        let ledgers = ledgers(of: subscription)
        let type = subscription.recordType
        if growth.own > 0 {
            let users = ledgers.reduce(0) {
                $0 + $1.comparisonsPerChange(of: type, by: subscription.owner)
            }
            try check(
                growth.own + users, limits.perUser, path, "the predicates of one user",
                "limits.userCost")
        }
        guard growth.all > 0 else { return }
        let all = ledgers.reduce(0) { $0 + $1.comparisonsPerChange(of: type) }
        try check(
            growth.all + all, limits.perRecordType, path, "all predicates of a record type",
            "limits.recordTypeCost")
    }

    private func ledgers(of subscription: Subscription) -> [ConditionLedger] {
        [
            indexes.costs(of: subscription.container),
            indexes.connectedCosts(of: subscription.container),
        ].compactMap { $0 }
    }

    private func checkMemory(
        _ growth: ConditionLedger.Growth, of subscription: Subscription, path: String
    ) throws {
        // What does not grow is admitted regardless of the limits.
        var (users, all) = (0, 0)
        for ledger in ledgers(of: subscription) {
            if growth.own > 0 { users += ledger.memory(of: subscription.owner) }
            if growth.all > 0 { all += ledger.memory }
        }
        if growth.own > 0 { users += Int(growth.own) }
        if growth.all > 0 { all += Int(growth.all) }
        try checkMemory(users, all: all, path)
    }

    private func checkMemory(_ users: Int, all: Int, _ path: String) throws {
        let bounds = [
            (users, limits.userMegabytes, "the conditions of one user", "PerUser"),
            (all, limits.containerMegabytes, "all conditions of a container", "PerContainer"),
        ]
        for (bytes, megabytes, whose, name) in bounds where bytes > megabytes << 20 {
            throw APIError(
                .badRequest,
                "\(path.isEmpty ? "query" : "\(path).query"): with it, \(whose) would take "
                    + "\((bytes >> 20) + 1) MiB of memory; at most \(megabytes) are allowed "
                    + "(limits.conditionMegabytes\(name)). Long lists, and comparisons that ignore "
                    + "case or calculate, take the most memory")
        }
    }

    private func check(
        _ cost: Double, _ limit: Int, _ path: String, _ whose: String, _ name: String
    ) throws {
        guard cost > Double(limit) else { return }
        let place = path.isEmpty ? "query" : "\(path).query"
        throw APIError(
            .badRequest,
            "\(place): the predicate does not require a value that few records have: with it, "
                + "\(whose) would cost every change \(Int(cost.rounded(.up))) comparisons; at most "
                + "\(limit) are allowed (\(name)). Also compare a field with a value, as in "
                + "\"artist = 'x' AND …\"")
    }
}

extension PredicateCost {
    /// The cost in the form of a save's answer.
    var json: JSONValue {
        func rounded(_ value: Double) -> JSONValue { .number((value * 1e6).rounded() / 1e6) }
        return [
            "candidatesPerChange": rounded(candidatesPerChange),
            "comparisonsPerChange": rounded(comparisonsPerChange),
            "isResidual": .bool(isResidual),
        ]
    }
}
