import Fanout
import Live
import RelayModel
import Synchronization

/// What the queries of connected clients weigh, in accounts that count together with those of saved
/// conditions.
///
/// The same condition of one user counts once, over however many connections it is asked for: it is
/// one group. A query is charged from the set that brings it until its client edits it away, or
/// goes.
final class LiveAccounts: Sendable {
    /// One user's condition.
    struct Entry: Sendable, Hashable {
        let weight: ConditionWeight
        let container: ContainerKey
        let owner: UserID
        let type: RecordType?
        /// How the ledger knows it.
        private let known: Known

        /// An object: who works a set keeps entries while it waits, and a subscription is half a
        /// kilobyte; its condition may be most of a megabyte, and the ledger does not ask for it.
        private final class Known: Sendable {
            let subscription: Subscription

            init(_ subscription: Subscription) {
                var known = subscription
                known.scope = .database(recordType: subscription.recordType)
                self.subscription = known
            }
        }

        /// What a query weighs; `nil` where that is nothing.
        init?(_ subscription: Subscription, _ cost: PredicateCost) {
            weight = ConditionWeight(cost, in: subscription)
            guard weight.isNoticeable else { return nil }
            container = subscription.container
            owner = subscription.owner
            type = subscription.recordType
            known = Known(subscription)
        }

        static func == (left: Entry, right: Entry) -> Bool {
            left.weight == right.weight && left.container == right.container
                && left.owner == right.owner && left.type == right.type
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(weight)
            hasher.combine(owner)
            hasher.combine(type)
        }

        func add(to indexes: IndexDirectory) {
            indexes.connectedCosts(of: container).add(weight, of: known.subscription)
        }

        func remove(from indexes: IndexDirectory) {
            indexes.connectedCosts(of: container).remove(weight, of: known.subscription)
        }
    }

    private let indexes: IndexDirectory
    private let uses = Mutex<[Entry: Int]>([:])

    init(_ indexes: IndexDirectory) {
        self.indexes = indexes
    }

    /// Whether a user is charged for a condition already.
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

    /// Ends that.
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
