package import RelayModel
package import Storage
import Synchronization

/// What survives a crash, in a database: the log, the progress, the registry, and the exceptions.
///
/// What is asked of it is the same on every engine; an engine's room opens it. Everything that was
/// acknowledged is durable.
///
/// - Invariant: Nothing outside of the rooms of storage sees a row, a statement or a connection.
package final class RelayStore: Sendable {
    /// The database behind it.
    package let engine: any StoreEngine
    /// Random bytes that no other store has: part of every delivery's identity, so that two relays
    /// never mint the same one.
    package let storeIdentity: UUIDBytes
    /// How the store works.
    package let settings: StoreSettings

    let horizon: LogHorizon
    let ranges = RangeSignal()
    /// Says that what was held back may be judged anew.
    let releases = RangeSignal()
    let inboxes = InboxNews()
    let endedDevices: EndedDevices
    /// How much steps said of subscriptions since the start that was not added up.
    let notAddedUp = Atomic<Int>(0)
    /// Where those wait who read much.
    let line: ReaderLine
    /// What refuses changes before they would be lost; whoever watches the bounds sets it.
    package let gate = IntakeGate()
    /// How often quotas were reached.
    package let quotaTally = QuotaTally()
    /// The rows that were set aside because they cannot be read.
    package let unreadable = UnreadableRows()
    /// When all records were looked through last for those that nothing changed for long.
    let shadowsLookedThrough = Mutex<Timestamp?>(nil)
    /// The last change that was set aside when it was looked how large these are.
    let setAsideLookedAt = Mutex<Int64?>(nil)
    /// What was read of containers: what every request asks for comes from memory.
    let schemas = ContainerMemory<ContainerSchema>()
    let containerSettings = ContainerMemory<ContainerSettings>()
    let keysOfContainers = ContainerMemory<[AccessKey]>()
    let sourcesOfContainers = ContainerMemory<[StoredSource]>()
    /// How often the store was opened: who settles under an older number has lost the shard.
    let epoch: Int64

    /// The store in the database that `engine` has opened; `opened` says what it found there.
    package init(_ engine: any StoreEngine, _ opened: OpenedStore, settings: StoreSettings) {
        self.engine = engine
        self.settings = settings
        storeIdentity = opened.identity
        epoch = opened.epoch
        horizon = opened.horizon
        endedDevices = opened.endedDevices
        line = ReaderLine(turns: settings.scanningReaders)
    }

    deinit {
        engine.end()
    }

    /// The ID of the key with which the secrets are encrypted; `nil` if they lie there as they are.
    package var secretsKeyID: String? { settings.secrets.current?.id }

    /// Where the store is, for people to read.
    package var place: String { engine.place }

    /// Commits since the store was opened: with ``head()``, how many requests shared one.
    package var commitCount: UInt64 { engine.commitCount }

    /// Has the store wait for a database that is away only as long as an end may take.
    package func expectEnd() { engine.expectEnd() }

    /// Writes what is waiting, and closes the store.
    ///
    /// - Returns: Why the end is not an orderly one: writing had failed before, or its end did.
    ///   What was acknowledged is durable all the same.
    @discardableResult
    package func close() async -> StorageError? {
        await engine.close()
    }

    /// Has the writer run `body` in its next commit, and returns once that is durable.
    ///
    /// `body` may run more than once, if a commit fails as a whole and its parts are tried alone.
    /// What is written for a container takes turns with what is written for others.
    func write<Value: Sendable>(
        _ lane: WriteRequest.Lane = .own, of container: ContainerKey? = nil, changes: Int = 1,
        bytes: Int = 0,
        _ body: @escaping @Sendable (inout OpenCommit) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let request = WriteRequest(
                lane: lane, container: container, changes: max(1, changes), bytes: bytes,
                perform: { commit in
                    let value = try body(&commit)
                    return { continuation.resume(returning: value) }
                },
                fail: { [engine] in
                    continuation.resume(throwing: engine.translated($0))
                })
            if let refusal = engine.submit([request]) { continuation.resume(throwing: refusal) }
        }
    }

    /// Reads the last commit.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await engine.read(body)
    }
}

/// What an engine finds when it opens a store.
package struct OpenedStore: Sendable {
    /// The identity of the store.
    package let identity: UUIDBytes
    /// The number of this opening, higher than all before it.
    package let epoch: Int64
    /// How far the log is, which the engine advances with each commit.
    package let horizon: LogHorizon
    /// The registrations that ended a short while ago, to which the engine adds.
    package let endedDevices: EndedDevices

    package init(
        identity: UUIDBytes, epoch: Int64, horizon: LogHorizon, endedDevices: EndedDevices
    ) {
        self.identity = identity
        self.epoch = epoch
        self.horizon = horizon
        self.endedDevices = endedDevices
    }
}
