import PostgresLink
import Storage

extension PostgresSession {
    /// Connects in place of a connection that was lost, to a server that was good; `limits` changes
    /// those of the session.
    ///
    /// - Throws: ``PostgresError`` as of a lost connection, whatever keeps the server from being
    ///   used: it may pass, as a restart or a failover does.
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
