package import RelayModel
package import Storage
import Synchronization

/// The durable state of a relay in a database: the log, the progress, the registry, and the
/// exceptions.
///
/// The interface is the same on every engine; the engine's room opens the store. Everything that
/// was acknowledged is durable.
///
/// - Invariant: No code outside of the rooms of storage sees a row, a statement or a connection.
package final class RelayStore: Sendable {
    /// The database behind it.
    package let engine: any StoreEngine
    /// Random bytes that no other store has.
    ///
    /// They are part of every delivery's identity, so that two relays never create the same one.
    package let storeIdentity: UUIDBytes
    /// The limits and waits of the store.
    package let settings: StoreSettings

    let horizon: LogHorizon
    let ranges = RangeSignal()
    /// Signals that held deliveries may be judged again.
    let releases = RangeSignal()
    let inboxes = InboxNews()
    let endedDevices: EndedDevices
    /// The number of firings that steps recorded since the start and that are not added up yet.
    let notAddedUp = Atomic<Int>(0)
    /// The containers whose edits appended much lately, which the writer takes one by one.
    let largeWrites = LargeWrites()
    /// The queue of callers that read much.
    let line: ReaderLine
    /// The gate that refuses changes at the limits; the code that watches the limits sets it.
    package let gate = IntakeGate()
    /// The counts of how often quotas were reached.
    package let quotaTally = QuotaTally()
    /// The rows that were set aside because they cannot be read.
    package let unreadable = UnreadableRows()
    /// When all records were last scanned for those that have not changed for long.
    let shadowsLookedThrough = Mutex<Timestamp?>(nil)
    /// The last set-aside change at the time when their total size was last checked.
    let setAsideLookedAt = Mutex<Int64?>(nil)
    /// The numbers of dedupe keys, as upkeep counts them.
    let rememberedKeys: Mutex<RememberedKeys>
    /// Caches of what was read about containers, for data that every request needs.
    let schemas = ContainerMemory<ContainerSchema>()
    let containerSettings = ContainerMemory<ContainerSettings>()
    let keysOfContainers = ContainerMemory<[AccessKey]>()
    let sourcesOfContainers = ContainerMemory<[StoredSource]>()
    /// The number of this opening of the store.
    ///
    /// A process that settles under an older number has lost the shard.
    let epoch: Int64

    /// Creates the store in the database that `engine` has opened.
    ///
    /// `opened` is what the engine found there.
    package init(_ engine: any StoreEngine, _ opened: OpenedStore, settings: StoreSettings) {
        self.engine = engine
        self.settings = settings
        storeIdentity = opened.identity
        epoch = opened.epoch
        horizon = opened.horizon
        endedDevices = opened.endedDevices
        line = ReaderLine(turns: settings.scanningReaders)
        let window = Timestamp(milliseconds: 0).advanced(by: settings.dedupeWindow)
        rememberedKeys = Mutex(RememberedKeys(window: window.stored))
    }

    deinit {
        engine.end()
    }

    /// The ID of the key that encrypts the secrets; `nil` if they are stored in plain form.
    package var secretsKeyID: String? { settings.secrets.current?.id }

    /// The location of the store for people to read.
    package var place: String { engine.place }

    /// What the operator should know of how the store is kept; `nil` if nothing.
    package var advice: String? { engine.advice }

    /// The number of commits since the store was opened.
    ///
    /// Together with ``head()`` it shows how many requests shared a commit.
    package var commitCount: UInt64 { engine.commitCount }

    /// Limits the waits for an unreachable database from now on to what a shutdown may take.
    package func expectEnd() { engine.expectEnd() }

    /// Writes what is waiting, and closes the store.
    ///
    /// - Returns: The reason if the shutdown was not orderly, because writing had failed before or
    ///   the last writes failed. What was acknowledged is durable even then.
    @discardableResult
    package func close() async -> StorageError? {
        await engine.close()
    }

    /// Has the writer run `body` in its next commit, and returns once the commit is durable.
    ///
    /// `body` may run more than once: if a commit fails as a whole, its requests are tried
    /// separately. Writes for a container take turns with writes for other containers.
    func write<Value: Sendable>(
        _ lane: WriteRequest.Lane = .own, of container: ContainerKey? = nil, changes: Int = 1,
        bytes: Int = 0, isLarge: Bool = false,
        lookAhead: (@Sendable (inout OpenCommit, inout Lookahead) throws -> Void)? = nil,
        _ body: @escaping @Sendable (inout OpenCommit) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let request = WriteRequest(
                lane: lane, container: container, changes: max(1, changes), bytes: bytes,
                isLarge: isLarge, lookAhead: lookAhead,
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

    /// Reads the state of the last commit.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await engine.read(body)
    }
}

/// The state that an engine finds when it opens a store.
package struct OpenedStore: Sendable {
    /// The identity of the store.
    package let identity: UUIDBytes
    /// The number of this opening, higher than all previous ones.
    package let epoch: Int64
    /// The state of the log in memory, which the engine advances with each commit.
    package let horizon: LogHorizon
    /// The registrations that ended recently, to which the engine adds.
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
