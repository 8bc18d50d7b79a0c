package import RelayModel
import Synchronization

/// What conditions weigh that are being saved: from when they are weighed until the follower has
/// entered them in the accounts, or it is known that they are not saved.
///
/// The accounts alone hear of a condition only then: whoever saves very many at once would be
/// weighed by none of them.
///
/// Concurrency: a lock around values.
package final class ConditionsUnderWay: Sendable {
    /// One condition.
    package struct Entry: Sendable, Hashable {
        /// Whose subscription it is, of which one version at the most is active.
        struct Key: Sendable, Hashable {
            let owner: UserID
            let database: DatabaseScope
            let id: SubscriptionID
        }

        let weight: ConditionWeight
        let key: Key
        let type: RecordType?
        /// Comparisons that it is expected to add to a change of its record type.
        package var comparisonsPerChange: Double { Double(weight.cost) }
        /// Bytes that it takes in memory; 0 if they are few.
        package var memory: Int { Int(weight.memory) }

        /// What the condition of a subscription weighs; `nil` where that is nothing.
        package init?(_ subscription: Subscription, _ cost: PredicateCost) {
            weight = ConditionWeight(cost, in: subscription)
            guard weight.isNoticeable else { return nil }
            key = Key(
                owner: subscription.owner, database: subscription.database, id: subscription.id)
            type = subscription.recordType
        }
    }

    /// Those of one container.
    private struct Line: Sendable {
        let costs = ConditionLedger()
        /// How often each is being saved: whoever saves the same from two devices, or once more
        /// because no answer came, has one of it in the end.
        private var uses: [Entry: Int] = [:]
        /// Up to where the follower has entered what was saved.
        private var entered = LogPosition.start
        /// What was saved behind that.
        private var saved: [LogPosition: Entry] = [:]
        /// Where each subscription of it was saved last.
        private var last: [Entry.Key: LogPosition] = [:]

        mutating func settle(_ entry: Entry, savedAt position: LogPosition?) {
            // Callers come here in any order; a version that was replaced counts no more.
            guard let position, entered < position, (last[entry.key] ?? .start) < position else {
                return remove(entry)
            }
            if let former = last.updateValue(position, forKey: entry.key),
                let replaced = saved.removeValue(forKey: former)
            {
                remove(replaced)
            }
            saved[position] = entry
        }

        mutating func enter(_ position: LogPosition) {
            entered = max(entered, position)
            guard let entry = saved.removeValue(forKey: position) else { return }
            if last[entry.key] == position { last[entry.key] = nil }
            remove(entry)
        }

        mutating func enterAll(upTo position: LogPosition) {
            entered = max(entered, position)
            for known in saved.keys where known <= position { enter(known) }
        }

        func former(of entry: Entry) -> Entry? {
            last[entry.key].flatMap { saved[$0] }
        }

        func has(_ entry: Entry) -> Bool { uses[entry] != nil }

        mutating func add(_ entry: Entry) {
            uses[entry, default: 0] += 1
            guard uses[entry] == 1 else { return }
            costs.add(entry.weight, of: entry.key.owner, on: entry.type)
        }

        private mutating func remove(_ entry: Entry) {
            guard let count = uses[entry] else { return }
            uses[entry] = count > 1 ? count - 1 : nil
            guard count == 1 else { return }
            costs.remove(entry.weight, of: entry.key.owner, on: entry.type)
        }
    }

    private let lines = Mutex<[ContainerKey: Line]>([:])

    init() {}

    /// What the conditions of a container weigh that are being saved; `nil` if none ever was.
    package func costs(of container: ContainerKey) -> ConditionLedger? {
        lines.withLock { $0[container]?.costs }
    }

    /// The condition in the place of which one is saved, if that was saved and is under way.
    package func former(of entry: Entry, in container: ContainerKey) -> Entry? {
        lines.withLock { $0[container]?.former(of: entry) }
    }

    /// What a condition would add: nothing if the same is being saved for the same subscription.
    package func growth(by entry: Entry, in container: ContainerKey) -> Double {
        lines.withLock { lines in
            guard let line = lines[container] else { return entry.comparisonsPerChange }
            if line.has(entry) { return 0 }
            return entry.comparisonsPerChange
                - (line.former(of: entry)?.comparisonsPerChange ?? 0)
        }
    }

    /// Bytes that a condition would add: none if the same is being saved for the same subscription.
    package func memoryGrowth(by entry: Entry, in container: ContainerKey) -> Int {
        lines.withLock { lines in
            guard let line = lines[container] else { return entry.memory }
            if line.has(entry) { return 0 }
            return entry.memory - (line.former(of: entry)?.memory ?? 0)
        }
    }

    /// A condition is about to be saved.
    package func begin(_ entry: Entry, in container: ContainerKey) {
        lines.withLock { lines in
            if lines[container] == nil { lines[container] = Line() }
            lines[container]?.add(entry)
        }
    }

    /// A condition that was begun with stands in the log at `position`; `nil` if it was not saved.
    package func settle(
        _ entry: Entry, savedAt position: LogPosition?, in container: ContainerKey
    ) {
        lines.withLock { $0[container]?.settle(entry, savedAt: position) }
    }

    /// The follower has entered what was saved at `position`, and all of the container before it.
    func enter(_ position: LogPosition, of container: ContainerKey) {
        lines.withLock { $0[container]?.enter(position) }
    }

    /// The follower has loaded what was saved up to `position`, whosever it is.
    func enterAll(upTo position: LogPosition) {
        lines.withLock { lines in
            for container in lines.keys { lines[container]?.enterAll(upTo: position) }
        }
    }
}
