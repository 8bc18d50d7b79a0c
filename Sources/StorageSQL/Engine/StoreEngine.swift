package import RelayModel
package import Storage

/// The database behind a ``RelayStore``: how to read and write it, and what is specific to it.
///
/// The steps, the statements and everything that a store answers belong to ``RelayStore`` and are
/// the same for every database.
package protocol StoreEngine: AnyObject, Sendable {
    /// The location of the store for people to read, without a password.
    var place: String { get }

    /// Runs `body` in a read transaction of its own that sees one commit.
    ///
    /// `body` must not write. It blocks a thread, but no other reader. If it finds damage, all
    /// writing ends, because no further change may be acknowledged on top of damage.
    ///
    /// - Throws: The translation of a failure by ``translated(_:)``; `CancellationError` if the
    ///   task is cancelled meanwhile.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value

    /// Runs the requests of one line in order in the next commits and answers each one once its
    /// commit is durable, or returns why none of them is accepted.
    ///
    /// The engine creates the ``OpenCommit`` with the log's head as of the transaction, and runs
    /// requests with ``OpenCommit/run(_:_:)``. After the commit, and before any answer, it passes
    /// what was appended to the store's ``EndedDevices`` and ``LogHorizon``.
    func submit(_ requests: [WriteRequest]) -> StorageError?

    /// Returns whether containers other than `container` wrote recently.
    func isContended(by container: ContainerKey) -> Bool

    /// Returns the error that callers get for a failure of the engine.
    ///
    /// Other errors are returned unchanged.
    func translated(_ error: any Error) -> any Error

    /// The number of commits since the store was opened.
    var commitCount: UInt64 { get }

    /// Whether another process may own the store by now and may have changed what was read from it.
    var isInDoubt: Bool { get }

    /// The space that the store takes.
    var footprint: StoreFootprint { get }

    /// Checks that an append may use more space; called before every append.
    ///
    /// - Throws: ``StorageError/noRoom(_:)`` if it may not.
    func checkRoom() throws(StorageError)

    /// The reason why appends are currently refused for lack of space; `nil` if they are not.
    var shortage: String? { get }

    /// What the operator should know of how the store is kept, and can do about it; `nil` if
    /// nothing.
    var advice: String? { get }

    /// Updates the planner's statistics where they are stale, within a commit.
    func optimize(_ db: Database) throws

    /// Notes that the shutdown has begun: from now on, writes have some seconds to finish.
    func expectEnd()

    /// Stops accepting requests, writes what is waiting, and closes.
    func end()

    /// Does what `end()` does and waits until it is done.
    ///
    /// - Returns: The reason if the shutdown is not orderly, or else `nil`.
    func close() async -> StorageError?
}

extension StoreEngine {
    /// Always `false`, for an engine that does not write.
    package func isContended(by container: ContainerKey) -> Bool { false }

    package var advice: String? { nil }

    /// Always `false`, for an engine whose store no other process can take.
    package var isInDoubt: Bool { false }

    /// Does nothing, for an engine without waits.
    package func expectEnd() {}
}
