import PostgresLink
import RelayModel
import Storage
import StorageSQL
import Synchronization

/// A store on a PostgreSQL server: one writer, which owns a thread, some readers, and a lease.
final class ServerEngine: StoreEngine {
    let place: String
    let target: PostgresPlace
    private let inbox: WriteInbox
    private let writer: ServerWriter
    private let readers: ServerReaders
    private let lease: LeaseRenewer
    private let ending = EngineEnding()
    private let session: PostgresSession

    /// How many connections are kept for reading, beside those of who reads much.
    private static let readerCount = 3

    private static func readers(_ settings: StoreSettings) -> Int {
        readerCount + settings.scanningReaders
    }

    /// How many are kept altogether: one to write and one for the lease besides.
    static func connectionCount(_ settings: StoreSettings) -> Int { readers(settings) + 2 }

    /// Begins to write, to read and to renew the lease of a store that is owned.
    init(
        _ session: PostgresSession, _ connection: PostgresConnection, _ opened: OpenedStore,
        as claimant: StoreClaimant, census: StoreCensus? = nil, settings: StoreSettings
    ) throws(StorageError) {
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
            throw .inaccessible(path: place, reason: "the process has no descriptor left")
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
        // An end that was asked for is an orderly one.
        let earlier = writer.failure
        end()
        await ending.wait()
        return earlier
    }

    func submit(_ requests: [WriteRequest]) -> StorageError? {
        inbox.submit(requests)
    }

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

    /// The server's own log, and the room on its disk, are its own matter.
    var footprint: StoreFootprint {
        var footprint = StoreFootprint(fileBytes: lease.bytes, walBytes: 0, freeBytes: nil)
        footprint.nodes = lease.nodes
        footprint.disagreements = lease.disagreements
        return footprint
    }

    /// The server says itself when it has no room.
    func checkRoom() throws(StorageError) {}

    var shortage: String? {
        lease.absence ?? session.shortageOfConnections ?? writer.standstill
    }

    /// The server's autovacuum does it.
    func optimize(_ db: Database) throws {}
}

/// Says when the shard was given back.
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
