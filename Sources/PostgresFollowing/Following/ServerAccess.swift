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
                settings.target.parameters(
                    isReplication: isReplication, authorities: settings.authorities),
                wake: memory.wake, watch: watch, isStopped: { memory.isStopped })
            guard connection.serverVersion >= oldestVersion else {
                throw FollowProblem.serverTooOld(connection.serverVersion)
            }
            try connection.query(Catalogue.writing)
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
