package import Matching
package import RelayModel
import Synchronization

/// The indexes of all containers, for whoever saves and whoever operates.
///
/// The follower enters and edits them; everybody may ask them.
package final class IndexDirectory: Sendable {
    private struct Entry: Sendable {
        let index: SubscriptionIndex
        let costs: ConditionLedger
    }

    private let entries = Mutex<[ContainerKey: Entry]>([:])
    /// What the queries of connected clients weigh.
    private let connected = Mutex<[ContainerKey: ConditionLedger]>([:])
    /// What the conditions weigh that are being saved.
    package let underWay = ConditionsUnderWay()
    /// Keeps edits apart from judgements that take long.
    let turns = JudgingTurns()
    /// An index of nothing, by which conditions are weighed where nothing was saved.
    package let empty = SubscriptionIndex(seed: 0)

    package init() {}

    /// Enters the index of a container.
    func put(_ state: ContainerState, of container: ContainerKey) {
        let entry = Entry(index: state.index, costs: state.costs)
        entries.withLock { $0[container] = entry }
    }

    /// The containers that have an index.
    package var containers: [ContainerKey] {
        entries.withLock { Array($0.keys) }
    }

    /// The index of a container; `nil` while nothing was saved in it.
    package func index(of container: ContainerKey) -> SubscriptionIndex? {
        entries.withLock { $0[container]?.index }
    }

    /// What the queries of a container's connected clients cost its ordinary changes, beside what
    /// is saved: they stand in an index of their own.
    package func connectedCosts(of container: ContainerKey) -> ConditionLedger {
        connected.withLock { connected in
            if let ledger = connected[container] { return ledger }
            let ledger = ConditionLedger()
            connected[container] = ledger
            return ledger
        }
    }

    /// What the conditions of a container's subscriptions cost its ordinary changes.
    package func costs(of container: ContainerKey) -> ConditionLedger? {
        entries.withLock { $0[container]?.costs }
    }
}
