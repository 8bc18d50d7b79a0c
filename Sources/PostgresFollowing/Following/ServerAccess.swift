import PostgresLink

/// How a follower comes to a server, and what is made of its answers.
enum ServerAccess {
    /// The oldest version that has what is used.
    private static let oldestVersion = 140_000

    /// Connects, and sets what a session needs.
    ///
    /// - Throws: ``FollowProblem``.
    static func connect(
        _ settings: FollowSettings, _ memory: FollowMemory,
        _ watch: @escaping @Sendable () -> Duration,
        isReplication: Bool
    ) throws -> PostgresConnection {
        do {
            let connection = try PostgresConnection(
                // A database whose sessions only read unless they say otherwise is followed too.
                settings.target.parameters(
                    isReplication: isReplication, writesByDefault: false,
                    authorities: settings.authorities),
                wake: memory.wake, watch: watch, isStopped: { memory.isStopped })
            guard connection.serverVersion >= oldestVersion else {
                throw FollowProblem.serverTooOld(connection.serverVersion)
            }
            try connection.query(Catalogue.writing)
            // The server knows of no letters there, and refuses to send a row with a text that is
            // not the client's: what its bytes are is decided here, value by value.
            if connection.serverEncoding == "SQL_ASCII" {
                try connection.query("SET client_encoding = 'SQL_ASCII'")
            }
            return connection
        } catch let error as PostgresError {
            throw error.problem
        }
    }

    /// Turns what a server answers into a state.
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
