package import Storage

/// The database behind a ``RelayStore``: how it is read and written, and what only it knows.
///
/// The steps, the statements and all that a store is asked belong to the store, and are the same
/// whatever the database is.
package protocol StoreEngine: AnyObject, Sendable {
    /// Where the store is, for people to read; without a password.
    var place: String { get }

    /// Reads, of one commit, in a transaction of its own.
    ///
    /// `body` may not write. It blocks a thread, and no other reader. Damage that is found ends all
    /// writing, because nothing more may be acknowledged on top of it.
    ///
    /// - Throws: What ``translated(_:)`` makes of a failure; `CancellationError` if the task is
    ///   cancelled meanwhile.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value

    /// Has the requests, of one line, run in their order in the next commits, and each answered
    /// once its own is durable; or says why it takes none of them.
    ///
    /// The engine makes the ``OpenCommit``, with the head that the log has within the transaction,
    /// and runs requests with ``OpenCommit/run(_:_:)``. After the commit, and before any answer, it
    /// tells the store's ``EndedDevices`` and ``LogHorizon`` what was appended.
    func submit(_ requests: [WriteRequest]) -> StorageError?

    /// The error that a caller gets for a failure of the engine; other errors stay what they are.
    func translated(_ error: any Error) -> any Error

    /// Commits since the store was opened.
    var commitCount: UInt64 { get }

    /// Whether another process may own the store by now, and may have changed what was read of it.
    var isInDoubt: Bool { get }

    /// How much room the store takes.
    var footprint: StoreFootprint { get }

    /// Checks that an append may use more room; it is asked before every one.
    ///
    /// - Throws: ``StorageError/noRoom(_:)``.
    func checkRoom() throws(StorageError)

    /// Why appends are refused for want of room at this moment; `nil` if they are not.
    var shortage: String? { get }

    /// Looks after the planner's statistics, where they are stale; within a commit.
    func optimize(_ db: Database) throws

    /// Hears that the end has begun: what is written from now on has some seconds.
    func expectEnd()

    /// Takes no more requests, writes what is waiting, and closes.
    func end()

    /// The same, and waits for it.
    ///
    /// - Returns: Why the end is not an orderly one.
    func close() async -> StorageError?
}

extension StoreEngine {
    /// Where nobody can take the store, there is no doubt.
    package var isInDoubt: Bool { false }

    /// Does nothing where nobody is waited for.
    package func expectEnd() {}
}
