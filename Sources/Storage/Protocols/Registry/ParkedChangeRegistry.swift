package import RelayModel

/// The changes that sources sent and the relay could not map, until they are replayed or deleted.
package protocol ParkedChangeRegistry: Sendable {
    /// Parks changes of one container's source that could not be mapped, durable when it returns,
    /// and returns their numbers in order.
    func park(_ changes: [ParkedChange]) async throws -> [UInt64]
    /// Returns parked changes after `number` in ascending order, at most `limit` and at most one
    /// page of bytes.
    func parkedChanges(
        of container: ContainerKey, after number: UInt64, limit: Int
    ) async throws -> [ParkedChange]
    /// Deletes a parked change that was replayed or given up, and returns whether there was one.
    func deleteParkedChange(_ number: UInt64, of container: ContainerKey) async throws -> Bool
}

extension ParkedChangeRegistry {
    /// Parks a single change and returns its number.
    package func park(_ change: ParkedChange) async throws -> UInt64 {
        try await park([change])[0]
    }
}

/// A change that a source sent and the relay could not map.
package struct ParkedChange: Sendable, Hashable {
    /// The number, which ascends; 0 before the change is parked.
    package var number: UInt64
    /// The container and environment of the source.
    package var container: ContainerKey
    /// The source.
    package var source: SourceName
    /// Why it could not be mapped.
    package var reason: String
    /// The path of the change in the body; empty for the whole body.
    package var path: String
    /// What the source sent: one item of a batch, or the whole body.
    package var body: [UInt8]
    /// The headers that the mapping reads, without credentials.
    package var headers: [String: String]
    /// When the change arrived.
    package var receivedAt: Timestamp

    /// Creates a parked change without a number.
    package init(
        container: ContainerKey, source: SourceName, reason: String, path: String, body: [UInt8],
        headers: [String: String], receivedAt: Timestamp
    ) {
        number = 0
        self.container = container
        self.source = source
        self.reason = reason
        self.path = path
        self.body = body
        self.headers = headers
        self.receivedAt = receivedAt
    }
}
