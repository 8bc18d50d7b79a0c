/// Opens a database for a follower: checks that everything that following needs exists, and creates
/// it if asked to.
///
/// Only the follower's thread uses it.
protocol RowOrigin: Sendable {
    /// Returns whether following continues where it was; otherwise it begins.
    ///
    /// - Throws: ``FollowProblem``.
    func goesOn() throws -> Bool
    /// Begins to follow; returns a reader of the existing rows, or `nil` if they are not wanted.
    ///
    /// - Throws: ``FollowProblem``.
    func begin() throws -> SnapshotReader?
    /// Checks what the server has to keep while the existing rows are read.
    ///
    /// - Throws: ``FollowProblem``.
    func look() throws
    /// Records in the database that following has begun, once the relay has the existing rows.
    ///
    /// A follower that is killed earlier begins again.
    ///
    /// - Throws: ``FollowProblem``.
    func keep() throws
    /// Starts to read changes.
    ///
    /// - Throws: ``FollowProblem``.
    func stream() throws -> any RowStream
}

/// A stream of changes of rows, in the order in which they are posted.
protocol RowStream: Sendable {
    /// Waits for something to post and takes it: a full request, or what there is while nothing is
    /// being posted.
    ///
    /// - Throws: `CancellationError` once the follower is stopped.
    func nextBatch() throws -> RowBatch
    /// Waits until at most ``RowBatch/mostReady`` batches that were handed out are not taken yet.
    ///
    /// It keeps the stream alive meanwhile.
    ///
    /// - Throws: `CancellationError` once the follower is stopped.
    func awaitTurn() throws
}
