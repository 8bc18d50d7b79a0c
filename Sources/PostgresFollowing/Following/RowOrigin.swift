/// What opens a database for a follower: looks whether all is there that following needs, and makes
/// it if it is asked to.
///
/// It is used by the follower's thread alone.
protocol RowOrigin: Sendable {
    /// Whether following goes on from where it was; otherwise it begins.
    ///
    /// - Throws: ``FollowProblem``.
    func goesOn() throws -> Bool
    /// Begins: returns what reads the rows as they are, or `nil` if they are not wanted.
    ///
    /// - Throws: ``FollowProblem``.
    func begin() throws -> SnapshotReader?
    /// Looks what the server keeps while the rows as they are are read.
    ///
    /// - Throws: ``FollowProblem``.
    func look() throws
    /// Notes in the database that it has begun, once the relay has the rows as they were: whoever
    /// is killed before begins anew.
    ///
    /// - Throws: ``FollowProblem``.
    func keep() throws
    /// Begins to read changes.
    ///
    /// - Throws: ``FollowProblem``.
    func stream() throws -> any RowStream
}

/// Changes of rows, in the order in which they are posted.
protocol RowStream: Sendable {
    /// Waits until there is something to be posted, and takes it: what fills a request, or what
    /// there is while nothing is being posted.
    ///
    /// - Throws: `CancellationError` once the follower is stopped.
    func nextBatch() throws -> RowBatch
    /// Waits until at most ``RowBatch/mostReady`` that were handed out are not taken, and keeps the
    /// stream alive meanwhile.
    ///
    /// - Throws: `CancellationError` once the follower is stopped.
    func awaitTurn() throws
}
