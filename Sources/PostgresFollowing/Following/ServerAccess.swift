import PostgresLink

/// Connects a follower to a server, and translates the server's errors.
enum ServerAccess {
    /// The oldest server version that has all features in use.
    private static let oldestVersion = 140_000

    /// Connects, and applies the settings that a session needs.
    ///
    /// - Throws: ``FollowProblem``.
    static func connect(
        _ settings: FollowSettings, _ memory: FollowMemory,
        _ watch: @escaping @Sendable () -> Duration,
        isReplication: Bool
    ) throws -> PostgresConnection {
        do {
            let connection = try PostgresConnection(
                // Databases whose sessions are read-only by default can be followed too.
                settings.target.parameters(
                    isReplication: isReplication, writesByDefault: false,
                    authorities: settings.authorities),
                wake: memory.wake, watch: watch, isStopped: { memory.isStopped })
            guard connection.serverVersion >= oldestVersion else {
                throw FollowProblem.serverTooOld(connection.serverVersion)
            }
            try connection.query(Catalogue.writing)
            // Such a server knows no encoding, and refuses to send a row with a text that is not
            // valid in the client's. So the bytes are decoded here, value by value.
            if connection.serverEncoding == "SQL_ASCII" {
                try connection.query("SET client_encoding = 'SQL_ASCII'")
            }
            return connection
        } catch let error as PostgresError {
            throw error.problem
        }
    }

    /// Runs `body`, and turns the server's errors into a ``FollowProblem``.
    static func told<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as PostgresError {
            throw error.problem
        } catch let error as MalformedMessage {
            throw FollowProblem.brokenStream(error.description)
        }
    }
}
