package import FoundationEssentials
package import Storage

/// One end of a move: a whole store on one engine.
///
/// The move has the store alone: no relay works on it or can open it meanwhile. One thread at a
/// time uses it.
package protocol MoveEnd: AnyObject {
    /// The location of the store for people to read, without a password.
    var place: String { get }

    /// Runs `body` in a read transaction that sees one moment.
    func read<Value>(_ body: (Database) throws -> Value) throws -> Value

    /// Runs `body` in one write transaction, which is durable when this returns.
    ///
    /// No trigger fires.
    ///
    /// - Throws: An error also if another process has taken the store meanwhile. Then nothing was
    ///   written.
    func write<Value>(_ body: (Database) throws -> Value) throws -> Value

    /// Keeps relays away from the store from this transaction on, and creates the place for a
    /// ``MoveMark``.
    func lockOut(_ db: Database) throws

    /// Lets relays open the store again from this transaction on.
    ///
    /// The mark must be deleted.
    func letIn(_ db: Database) throws

    /// Removes what lies beside the store and belongs to its current identity.
    ///
    /// It is called before ``setIdentity(_:_:)``, and leaves the store usable as it was, even if
    /// the process ends in between.
    func releaseIdentity() throws

    /// Gives the store another identity of 16 bytes.
    func setIdentity(_ identity: Data, _ db: Database) throws

    /// Checks the whole store as `belfry check` does.
    func check() throws -> StoreReport

    /// Releases the store.
    func end() async
}
