import PostgresLink
import RelayModel
import Storage
import StorageSQL
import Synchronization

/// A store on a PostgreSQL server: one writer with a thread of its own, some readers, and a lease.
final class ServerEngine: StoreEngine {
    let place: String
    let target: PostgresPlace
    let advice: String?
    private let inbox: WriteInbox
    private let writer: ServerWriter
    private let readers: ServerReaders
    private let lease: LeaseRenewer
    private let ending = EngineEnding()
    private let session: PostgresSession

    /// The number of reading connections, besides those for long scans.
    private static let readerCount = 3

    private static func readers(_ settings: StoreSettings) -> Int {
        readerCount + settings.scanningReaders
    }

    /// Returns the total number of connections, including one for the writer and one for the lease.
    static func connectionCount(_ settings: StoreSettings) -> Int { readers(settings) + 2 }

    /// Starts the readers, the writer and the renewal of the lease, for a store that was just
    /// claimed.
    init(
        _ session: PostgresSession, _ connection: PostgresConnection, _ opened: OpenedStore,
        as claimant: StoreClaimant, census: StoreCensus? = nil, settings: StoreSettings,
        advice: String? = nil
    ) throws(StorageError) {
        self.advice = advice
        place = "\(session.place)"
        target = session.place
        self.session = session
        let horizon = opened.horizon
        inbox = WriteInbox(settings: settings)
        readers = try ServerReaders(session, count: Self.readers(settings))
        writer = ServerWriter(
            session, epoch: opened.epoch, inbox: inbox, opened: opened, settings: settings)
        let lease = LeaseRenewer(
            session, connection, epoch: opened.epoch, as: claimant, census: census
        ) { [writer] in
            writer.giveUp(.closed("another relay owns the store now"))
        }
        guard let lease else {
            throw .inaccessible(path: place, reason: "the process has no file descriptor left")
        }
        self.lease = lease
        lease.start { [ending] in ending.finish() }
        let hosts = HostWatch(session)
        hosts?.start()
        writer.start { [lease, readers] in
            hosts?.end()
            let earlier = horizon.closed
            horizon.close(earlier ?? .closed("the store is closed"))
            readers.end()
            lease.end()
        }
    }

    func expectEnd() { session.expectEnd() }

    func end() {
        inbox.end(.closed("the store is closed"))
    }

    func close() async -> StorageError? {
        // Read before `end()`, which also closes the horizon.
        let earlier = writer.failure
        end()
        await ending.wait()
        return earlier
    }

    func submit(_ requests: [WriteRequest]) -> StorageError? {
        inbox.submit(requests)
    }

    func isContended(by container: ContainerKey) -> Bool { inbox.isContended(by: container) }

    func translated(_ error: any Error) -> any Error {
        (error as? PostgresError)?.storageError(of: target) ?? error
    }

    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        do {
            return try await readers.read(body)
        } catch {
            if let failure = error as? PostgresError, failure.verdict == .damaged {
                writer.giveUp(.closed("damage was found: \(failure.message)"))
            }
            throw translated(error)
        }
    }

    var isInDoubt: Bool { lease.isOver }

    var commitCount: UInt64 { writer.commitCount }

    /// The server's write-ahead log and the space on its disk are not reported.
    var footprint: StoreFootprint {
        var footprint = StoreFootprint(fileBytes: lease.bytes, walBytes: 0, freeBytes: nil)
        footprint.nodes = lease.nodes
        footprint.disagreements = lease.disagreements
        return footprint
    }

    /// Does nothing: the server reports itself when its disk is full.
    func checkRoom() throws(StorageError) {}

    var shortage: String? {
        lease.absence ?? session.shortageOfConnections ?? writer.standstill
    }

    /// Does nothing: the server's autovacuum analyses the tables.
    func optimize(_ db: Database) throws {}
}

/// Lets callers wait until the shard was released.
private final class EngineEnding: Sendable {
    private struct State {
        var isFinished = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func finish() {
        let waiters = state.withLock { state in
            state.isFinished = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isFinished = state.withLock { state in
                if !state.isFinished { state.waiters.append(continuation) }
                return state.isFinished
            }
            if isFinished { continuation.resume() }
        }
    }
}
