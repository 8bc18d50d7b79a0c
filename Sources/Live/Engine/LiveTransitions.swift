import Matching
import RelayModel

/// A group that is told a change.
struct LiveTold {
    let group: LiveGroup
    /// Only of an update.
    let transition: LiveTransition?
}

/// Where updates bring records, for queries that are told of all that fit.
///
/// Their conditions are filed once more and judged on the record before; a change that shows none
/// costs nothing. What asks for a transition is told that one by the ``Matching/UpdateRules``.
struct LiveTransitions {
    private let index: SubscriptionIndex
    private var rules: [UInt32: UpdateRules.Rule] = [:]

    /// The seed keeps the index's hashes secret.
    init(indexSeed: UInt64) {
        index = SubscriptionIndex(seed: indexSeed)
    }

    /// Files a query of changes.
    mutating func insert(_ subscription: Subscription, indexed: IndexedSubscription) {
        guard subscription.firesWhen == .matches, subscription.firesOn.contains(.update) else {
            return
        }
        rules[UInt32(truncatingIfNeeded: indexed.serial)] = UpdateRules.Rule(
            firesWhen: .entered, changedKeys: [],
            fields: indexed.predicate.map(\.fieldsRead) ?? [])
        var earlier = indexed
        // The before image is judged as that of a deletion is: by what was known before.
        earlier.firesOn = .delete
        index.insert(earlier)
    }

    /// Takes a query out.
    mutating func remove(_ number: UInt32) {
        guard rules.removeValue(forKey: number) != nil else { return }
        index.remove(serial: UInt64(number))
    }

    /// The groups that are told a change, with where it brought its record.
    ///
    /// - Throws: `DearChange` if that takes too much.
    func told(
        _ groups: [LiveGroup], of change: RecordChange, now: Timestamp
    ) throws(DearChange) -> [LiveTold] {
        guard change.operation == .update else {
            return groups.map { LiveTold(group: $0, transition: nil) }
        }
        var fitting: Set<UInt64> = []
        if change.before != nil, groups.contains(where: { rules[$0.number] != nil }) {
            var earlier = change
            earlier.operation = .delete
            var serials: [UInt64] = []
            let dear = index.matches(for: earlier, now: now, into: &serials)
            if let dear { throw dear }
            fitting = Set(serials)
        }
        return groups.map { group in
            LiveTold(group: group, transition: transition(of: group, change, fitting))
        }
    }

    private func transition(
        of group: LiveGroup, _ change: RecordChange, _ fitting: Set<UInt64>
    ) -> LiveTransition {
        switch group.query.subscription.firesWhen {
        case .entered: .entered
        case .stayed: .stayed
        case .left: .left
        case .matches where fitting.contains(UInt64(group.number)): .stayed
        case .matches:
            rules[group.number]?.isDecided(by: change, .before) == true ? .entered : .unknown
        }
    }
}
