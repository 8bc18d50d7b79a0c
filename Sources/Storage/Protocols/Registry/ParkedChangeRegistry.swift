package import RelayModel

/// What sources sent and could not be mapped, until it is replayed or given up.
package protocol ParkedChangeRegistry: Sendable {
    /// Parks what a source of one container sent and could not be mapped, durably and at once;
    /// returns the numbers, in order.
    func park(_ changes: [ParkedChange]) async throws -> [UInt64]
    /// Parked changes by ascending number, after `number`, at most `limit`, and at most a page of
    /// bytes.
    func parkedChanges(
        of container: ContainerKey, after number: UInt64, limit: Int
    ) async throws -> [ParkedChange]
    /// Deletes a parked change, once it was replayed or given up; returns whether there was one.
    func deleteParkedChange(_ number: UInt64, of container: ContainerKey) async throws -> Bool
}

extension ParkedChangeRegistry {
    /// Parks a single change; returns its number.
    package func park(_ change: ParkedChange) async throws -> UInt64 {
        try await park([change])[0]
    }
}

/// What a source sent and could not be mapped.
package struct ParkedChange: Sendable, Hashable {
    /// The number, ascending; 0 before it is parked.
    package var number: UInt64
    /// The container and environment of the source.
    package var container: ContainerKey
    /// The source.
    package var source: SourceName
    /// Why it could not be mapped.
    package var reason: String
    /// The place in the body, as a path; empty for the whole.
    package var path: String
    /// What the source sent: one item of a batch, or the whole body.
    package var body: [UInt8]
    /// The headers that mapping looks at, without credentials.
    package var headers: [String: String]
    /// When it came.
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
