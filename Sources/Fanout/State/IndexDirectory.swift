package import Matching
package import RelayModel
import Synchronization

/// The indexes of all containers, for requests that save subscriptions, and for the operator.
///
/// The follower adds and edits them. Any caller may query them.
package final class IndexDirectory: Sendable {
    private struct Entry: Sendable {
        let index: SubscriptionIndex
        let costs: ConditionLedger
    }

    private let entries = Mutex<[ContainerKey: Entry]>([:])
    /// The weights of the queries of connected clients.
    private let connected = Mutex<[ContainerKey: ConditionLedger]>([:])
    /// The weights of the conditions that are being saved.
    package let underWay = ConditionsUnderWay()
    /// Keeps edits apart from long judgements.
    let turns = JudgingTurns()
    /// An empty index, by which conditions are weighed in a container without one.
    package let empty = SubscriptionIndex(seed: 0)

    package init() {}

    /// Adds the index of a container.
    func put(_ state: ContainerState, of container: ContainerKey) {
        let entry = Entry(index: state.index, costs: state.costs)
        entries.withLock { $0[container] = entry }
    }

    /// The containers that have an index.
    package var containers: [ContainerKey] {
        entries.withLock { Array($0.keys) }
    }

    /// Returns the index of a container, or `nil` while nothing was saved in it.
    package func index(of container: ContainerKey) -> SubscriptionIndex? {
        entries.withLock { $0[container]?.index }
    }

    /// Returns the costs of the queries of a container's connected clients, which add to those of
    /// saved subscriptions.
    ///
    /// The queries have an index of their own.
    package func connectedCosts(of container: ContainerKey) -> ConditionLedger {
        connected.withLock { connected in
            if let ledger = connected[container] { return ledger }
            let ledger = ConditionLedger()
            connected[container] = ledger
            return ledger
        }
    }

    /// Returns the costs of the conditions of a container's subscriptions.
    package func costs(of container: ContainerKey) -> ConditionLedger? {
        entries.withLock { $0[container]?.costs }
    }
}
