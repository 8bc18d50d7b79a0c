package import RelayModel
import Synchronization

/// The weights of the conditions that are being saved.
///
/// A condition is here from the time when it is weighed until the follower has entered it in the
/// accounts, or until it is known that it was not saved.
///
/// The accounts learn of a condition only then. Without this type, a client that saves very many
/// conditions at once would exceed the limits, because none of them would be in the accounts yet.
///
/// Concurrency: a lock around values.
package final class ConditionsUnderWay: Sendable {
    /// The condition of one subscription.
    package struct Entry: Sendable, Hashable {
        /// The subscription of the condition.
        ///
        /// At most one of its versions is active.
        struct Key: Sendable, Hashable {
            let owner: UserID
            let database: DatabaseScope
            let id: SubscriptionID
        }

        let weight: ConditionWeight
        let key: Key
        let type: RecordType?
        /// The number of comparisons that it is expected to add to a change of its record type.
        package var comparisonsPerChange: Double { Double(weight.cost) }
        /// The bytes that it takes in memory.
        ///
        /// It is 0 if these are few.
        package var memory: Int { Int(weight.memory) }

        /// Weighs the condition of a subscription.
        ///
        /// Returns `nil` if it weighs nothing.
        package init?(_ subscription: Subscription, _ cost: PredicateCost) {
            weight = ConditionWeight(cost, in: subscription)
            guard weight.isNoticeable else { return nil }
            key = Key(
                owner: subscription.owner, database: subscription.database, id: subscription.id)
            type = subscription.recordType
        }
    }

    /// The conditions of one container.
    private struct Line: Sendable {
        let costs = ConditionLedger()
        /// How often each condition is being saved.
        ///
        /// A client that saves the same from two devices, or again because no answer came, ends up
        /// with only one of it.
        private var uses: [Entry: Int] = [:]
        /// The position up to which the follower has entered what was saved.
        private var entered = LogPosition.start
        /// The conditions that were saved after that position.
        private var saved: [LogPosition: Entry] = [:]
        /// The position at which each subscription was saved last, among those.
        private var last: [Entry.Key: LogPosition] = [:]

        mutating func settle(_ entry: Entry, savedAt position: LogPosition?) {
            // Callers come here in any order. A version that was replaced no longer counts.
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

    /// Returns the ledger of a container's conditions that are being saved, or `nil` if there never
    /// were any.
    package func costs(of container: ContainerKey) -> ConditionLedger? {
        lines.withLock { $0[container]?.costs }
    }

    /// Returns the condition that `entry` replaces, if that was saved and is not entered yet.
    package func former(of entry: Entry, in container: ContainerKey) -> Entry? {
        lines.withLock { $0[container]?.former(of: entry) }
    }

    /// Returns the comparisons that a condition would add.
    ///
    /// If the same condition is being saved for the same subscription, that is nothing.
    package func growth(by entry: Entry, in container: ContainerKey) -> Double {
        lines.withLock { lines in
            guard let line = lines[container] else { return entry.comparisonsPerChange }
            if line.has(entry) { return 0 }
            return entry.comparisonsPerChange
                - (line.former(of: entry)?.comparisonsPerChange ?? 0)
        }
    }

    /// Returns the bytes that a condition would add.
    ///
    /// If the same condition is being saved for the same subscription, that is nothing.
    package func memoryGrowth(by entry: Entry, in container: ContainerKey) -> Int {
        lines.withLock { lines in
            guard let line = lines[container] else { return entry.memory }
            if line.has(entry) { return 0 }
            return entry.memory - (line.former(of: entry)?.memory ?? 0)
        }
    }

    /// Enters a condition that is about to be saved.
    package func begin(_ entry: Entry, in container: ContainerKey) {
        lines.withLock { lines in
            if lines[container] == nil { lines[container] = Line() }
            lines[container]?.add(entry)
        }
    }

    /// Notes the log position at which a condition was saved, or `nil` if it was not saved.
    package func settle(
        _ entry: Entry, savedAt position: LogPosition?, in container: ContainerKey
    ) {
        lines.withLock { $0[container]?.settle(entry, savedAt: position) }
    }

    /// Notes that the follower has entered what was saved at `position`, and everything of the
    /// container before it.
    func enter(_ position: LogPosition, of container: ContainerKey) {
        lines.withLock { $0[container]?.enter(position) }
    }

    /// Notes that the follower has loaded everything that was saved up to `position`, of all
    /// containers.
    func enterAll(upTo position: LogPosition) {
        lines.withLock { lines in
            for container in lines.keys { lines[container]?.enterAll(upTo: position) }
        }
    }
}
