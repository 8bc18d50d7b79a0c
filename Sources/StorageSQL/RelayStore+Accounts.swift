package import Storage

extension RelayStore {
    /// The accounts of all containers, of one commit, ordered by name.
    ///
    /// Both sides are computed from the tables: `owed` counts what was passed, whatever became of
    /// it; the other side counts what is there. It reads the indexes of retries and dead letters.
    package func accounts() async throws -> [DeliveryAccount] {
        try await read { try DeliveryAccount.all(in: $0) }
    }
}
