package import Storage

extension RelayStore {
    /// Returns the accounts of all containers as of one commit, ordered by name.
    ///
    /// Both sides are computed from the tables: `owed` counts what was passed, whatever its
    /// outcome, and the other side counts the existing rows. It reads the indexes of retries and
    /// dead letters.
    package func accounts() async throws -> [DeliveryAccount] {
        try await read { try DeliveryAccount.all(in: $0) }
    }
}
