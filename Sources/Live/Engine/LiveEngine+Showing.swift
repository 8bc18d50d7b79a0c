package import RelayModel

/// A connected client, for whoever operates the relay.
package struct LiveClientState: Sendable, Hashable {
    /// Its number since the relay's start.
    package let number: UInt64
    /// Who looks.
    package let reader: LiveReader
    /// The device, if it said so.
    package let device: DeviceID?
    /// How many queries it has declared.
    package let queries: Int
    /// How many of them have not begun, because they are read or caught up with.
    package let waiting: Int
    /// The version of its set.
    package let version: Int64
    /// Whether it fell behind, and has not been told from the log what happened meanwhile.
    package let isLagging: Bool
}

/// Queries that show the same, for whoever operates the relay.
package struct LiveGroupState: Sendable, Hashable {
    /// Its number in frames.
    package let number: UInt32
    /// What is shown.
    package let query: LiveQuery
    /// Whose own result it is, where who looks decides.
    package let reader: LiveReader?
    /// How many clients are told what comes.
    package let clients: Int
    /// How many queries wait for it.
    package let waiting: Int
    /// The members of a result, also those that its limit cuts off; `nil` until they are read.
    package let members: Int?
    /// What they take in memory, about.
    package let bytes: Int
}

extension LiveEngine {
    /// The clients of a container whose numbers come after `number`, ascending.
    ///
    /// - Complexity: linear in all connected clients.
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

    /// The groups of a container whose numbers come after `number`, ascending.
    ///
    /// - Complexity: linear in the groups of the container.
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
