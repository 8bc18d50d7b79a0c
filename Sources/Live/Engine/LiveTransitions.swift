import Matching
import RelayModel

/// A group that is sent a change.
struct LiveTold {
    let group: LiveGroup
    /// Where the change moved its record; `nil` unless the change is an update.
    let transition: LiveTransition?
}

/// Finds where updates move records, for queries that are sent all fitting changes.
///
/// Their conditions are indexed once more and judged on the record before the change. Changes that
/// match no such query cost nothing. Queries of a single transition get only that one, by the
/// ``Matching/UpdateRules``.
struct LiveTransitions {
    private let images: EarlierImages
    private var rules: [UInt32: UpdateRules.Rule] = [:]

    /// Creates the rules; the seed keeps the index's hashes secret.
    init(indexSeed: UInt64) {
        images = EarlierImages(indexSeed: indexSeed)
    }

    /// Adds a query of changes.
    mutating func insert(_ subscription: Subscription, indexed: IndexedSubscription) {
        guard subscription.firesWhen == .matches, subscription.firesOn.contains(.update) else {
            return
        }
        rules[UInt32(truncatingIfNeeded: indexed.serial)] = UpdateRules.Rule(
            firesWhen: .entered, changedKeys: [],
            fields: indexed.predicate.map(\.fieldsRead) ?? [])
        images.insert(indexed)
    }

    /// Removes a query.
    mutating func remove(_ number: UInt32) {
        guard rules.removeValue(forKey: number) != nil else { return }
        images.remove(serial: UInt64(number))
    }

    /// Returns the groups that are sent a change, with where it moved its record.
    ///
    /// - Throws: `DearChange` if that takes more than `mostSteps`.
    func told(
        _ groups: [LiveGroup], of change: RecordChange, now: Timestamp, mostSteps: Int,
        among mayJudge: ((UInt64) -> Bool)? = nil
    ) throws(DearChange) -> [LiveTold] {
        guard change.operation == .update else {
            return groups.map { LiveTold(group: $0, transition: nil) }
        }
        let isAsked = groups.contains { rules[$0.number] != nil }
        let fitting: Set<UInt64> =
            try isAsked
            ? images.serials(before: change, now: now, mostSteps: mostSteps, among: mayJudge) : []
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
