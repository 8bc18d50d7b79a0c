import Fanout
import Matching
import RelayModel
import Storage

/// Weighs what a subscription's predicate would cost every change of its record type, and what it
/// would take in memory, and refuses what is too heavy.
///
/// The accounts know of what is saved once the follower has it. What is being saved bears the same
/// bounds by itself (``begin(_:costing:path:)``): so both together are twice as much at the most.
struct PredicateScales: Sendable {
    let indexes: IndexDirectory
    let limits: CostLimits

    /// The cost of the predicate of `subscription`; what is charged already is not weighed again.
    ///
    /// - Throws: 400 that names the limit which it would exceed, or what reading the predicate
    ///   throws.
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

    /// The cost of the predicate of `subscription`, which is saved, in the place of `former` if
    /// that is given: what is saved already is not weighed again, only what it grows.
    ///
    /// What is looked at only where `former` is, for no more comparisons, costs no change more than
    /// before. It is let in whatever there is, also where others have filled that place since.
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
        // One that cannot be read any more is in no account, and is mended by what is saved. It is
        // weighed as it stands, and not as one more of its kind, which would weigh nothing.
        if let replaced,
            let former = try? self.cost(of: replaced.subscription, insteadOf: replaced.serial)
        {
            before = ConditionWeight(former, in: replaced.subscription)
            isNoDearer =
                before.condition == weight.condition
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

    /// What saving a condition comes to.
    struct Weighed: Sendable {
        let cost: PredicateCost
        /// Whether it costs no more than what it replaces.
        var isNoDearer = false
    }

    /// What a condition adds to the accounts of those that are saved.
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

    /// Counts what is weighed among what is being saved, until it is known what became of it.
    ///
    /// Not beside what is saved: whoever saves anew all that they have, as some clients do at each
    /// start, has it in both. What costs no more than what it replaces is counted, and let in.
    ///
    /// - Returns: What is to be settled; `nil` for what weighs nothing.
    /// - Throws: 400 that names the limit which it would exceed.
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
                limits.perUser, path, "what one user is saving", "limits.userCost")
            try check(
                growth + costs.comparisonsPerChange(of: type), limits.perRecordType, path,
                "all that is being saved for a record type", "limits.recordTypeCost")
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
        // Whatever is expected, and whatever it takes the place of: a change that has the value
        // pays for all that stand under it. Of an equal one there is no crowd.
        try check(
            Double(cost.crowd + 1), limits.perRecordType, path,
            "the predicates that ask for the same value", "limits.recordTypeCost")
        // What is saved and what connected clients ask for bear the same bounds together.
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
        // What does not grow is let in, whatever there is.
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
                    + "\((bytes >> 20) + 1) MiB of memory; allowed are \(megabytes) "
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
                + "\(whose) would cost every change \(Int(cost.rounded(.up))) comparisons; "
                + "allowed are \(limit) (\(name)). Compare a field with a value too, as in "
                + "\"artist = 'x' AND …\"")
    }
}

extension PredicateCost {
    /// As the answer of a save tells it.
    var json: JSONValue {
        func rounded(_ value: Double) -> JSONValue { .number((value * 1e6).rounded() / 1e6) }
        return [
            "candidatesPerChange": rounded(candidatesPerChange),
            "comparisonsPerChange": rounded(comparisonsPerChange),
            "isResidual": .bool(isResidual),
        ]
    }
}
