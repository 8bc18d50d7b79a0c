package import FoundationEssentials
package import Storage

/// One end of a move: a whole store, on one engine.
///
/// Whoever has it has the store alone: no relay works on it, and none gets it meanwhile. It is used
/// by one thread at a time.
package protocol MoveEnd: AnyObject {
    /// Where the store is, for people to read; without a password.
    var place: String { get }

    /// Reads, of one moment.
    func read<Value>(_ body: (Database) throws -> Value) throws -> Value

    /// Writes in one transaction, which is durable when this returns. No trigger fires.
    ///
    /// - Throws: Also if another process has got the store meanwhile; then nothing was written.
    func write<Value>(_ body: (Database) throws -> Value) throws -> Value

    /// Keeps relays away from the store from this transaction on, and has a place for a
    /// ``MoveMark``.
    func lockOut(_ db: Database) throws

    /// Lets a relay have the store again from this transaction on, whose mark is gone.
    func letIn(_ db: Database) throws

    /// Forgets what lies beside the store and belongs to the identity that it has: comes before
    /// ``setIdentity(_:_:)``, and leaves a store that is what it was, whatever ends the process.
    func releaseIdentity() throws

    /// Gives the store another identity of 16 bytes.
    func setIdentity(_ identity: Data, _ db: Database) throws

    /// Checks the whole store as `belfry check` does.
    func check() throws -> StoreReport

    /// Gives the store back.
    func end() async
}
