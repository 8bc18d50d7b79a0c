import Fanout
import Live
import RelayModel
import Synchronization

/// Charges the queries of connected clients to the accounts that also count saved conditions.
///
/// The same condition of one user counts once, however many connections declare it, because it is
/// one group. A query is charged from the set that declares it until its client removes it, or
/// disconnects.
final class LiveAccounts: Sendable {
    /// A condition of one user.
    struct Entry: Sendable, Hashable {
        let weight: ConditionWeight
        let container: ContainerKey
        let owner: UserID
        let type: RecordType?

        /// Creates the entry of a query; `nil` if its cost is negligible.
        init?(_ subscription: Subscription, _ cost: PredicateCost) {
            weight = ConditionWeight(cost, in: subscription)
            guard weight.isNoticeable else { return nil }
            container = subscription.container
            owner = subscription.owner
            type = subscription.recordType
        }

        func add(to indexes: IndexDirectory) {
            indexes.connectedCosts(of: container).add(weight, of: owner, on: type)
        }

        func remove(from indexes: IndexDirectory) {
            indexes.connectedCosts(of: container).remove(weight, of: owner, on: type)
        }
    }

    private let indexes: IndexDirectory
    private let uses = Mutex<[Entry: Int]>([:])

    init(_ indexes: IndexDirectory) {
        self.indexes = indexes
    }

    /// Returns whether the user is charged for a condition already, or the condition is free.
    func isCharged(_ entry: Entry?) -> Bool {
        entry.map { entry in uses.withLock { $0[entry] != nil } } ?? true
    }

    /// Charges queries.
    func enter(_ entries: some Collection<Entry>) {
        guard !entries.isEmpty else { return }
        uses.withLock { uses in
            for entry in entries {
                uses[entry, default: 0] += 1
                if uses[entry] == 1 { entry.add(to: indexes) }
            }
        }
    }

    /// Ends the charges of queries.
    func leave(_ entries: some Collection<Entry>) {
        guard !entries.isEmpty else { return }
        uses.withLock { uses in
            for entry in entries {
                guard let count = uses[entry] else { continue }
                uses[entry] = count > 1 ? count - 1 : nil
                if count == 1 { entry.remove(from: indexes) }
            }
        }
    }
}
