import PostgresLink
import Storage

extension PostgresSession {
    /// Connects again after a connection was lost, to a server that was usable before.
    ///
    /// `limits` is SQL that changes the limits of the session.
    ///
    /// - Throws: ``PostgresError``, as for a lost connection, whatever prevents the server's use,
    ///   because it may be temporary, as a restart or a failover is.
    func connectAgain(limits: String? = nil) throws -> ServerConnection {
        do {
            let connection = try connect()
            if let limits { try connection.query(limits) }
            return ServerConnection(
                try PostgresPipeline(connection, patience: Self.patience))
        } catch let error as StorageError {
            throw PostgresError(state: "", message: "\(error)")
        }
    }
}
