package import RelayModel

/// The state of a connected client, for the operator.
package struct LiveClientState: Sendable, Hashable {
    /// The client's number since the relay started.
    package let number: UInt64
    /// The reader behind the client.
    package let reader: LiveReader
    /// The device, if the client named it.
    package let device: DeviceID?
    /// The number of declared queries.
    package let queries: Int
    /// The number of queries that have not begun, because they are being loaded or resumed.
    package let waiting: Int
    /// The version of the client's set.
    package let version: Int64
    /// Whether the client fell behind, and has not been sent from the log what happened meanwhile.
    package let isLagging: Bool
}

/// The state of a group, for the operator.
package struct LiveGroupState: Sendable, Hashable {
    /// The group's number in frames.
    package let number: UInt32
    /// The query that the group shows.
    package let query: LiveQuery
    /// The reader whose own result it is, if the reader decides what is shown.
    package let reader: LiveReader?
    /// The number of clients that are sent changes.
    package let clients: Int
    /// The number of queries that wait for the group.
    package let waiting: Int
    /// The number of members, including those that the limit cuts off; `nil` until they are loaded.
    package let members: Int?
    /// The estimated memory of the members.
    package let bytes: Int
}

extension LiveEngine {
    /// Returns the clients of a container whose numbers are greater than `number`, ascending.
    ///
    /// - Complexity: Linear in all connected clients.
    package func clientStates(
        of container: ContainerKey, after number: UInt64, limit: Int
    ) -> [LiveClientState] {
        let found = clients.filter { $0.value.container == container && $0.key > number }
        return found.sorted { $0.key < $1.key }.prefix(limit).map { number, client in
            LiveClientState(
                number: number, reader: client.reader, device: client.device,
                queries: client.queries.keys.count { !$0.hasPrefix(LiveWaiter.getMark) },
                waiting: client.waiting.count, version: client.version,
                isLagging: client.isLagging)
        }
    }

    /// Returns the groups of a container whose numbers are greater than `number`, ascending.
    ///
    /// - Complexity: Linear in the groups of the container.
    package func groupStates(
        of container: ContainerKey, after number: UInt32, limit: Int
    ) -> [LiveGroupState] {
        let groups = containers[container]?.groups.filter { $0.key > number } ?? [:]
        return groups.sorted { $0.key < $1.key }.prefix(limit).map { number, group in
            LiveGroupState(
                number: number, query: group.query, reader: group.reader,
                clients: group.clients.count, waiting: group.waiting.count,
                members: group.members?.all.count, bytes: group.bytes)
        }
    }
}
