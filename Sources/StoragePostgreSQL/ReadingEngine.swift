import PostgresLink
import RelayModel
package import Storage
package import StorageSQL

/// A store on a PostgreSQL server that another process owns; it is read-only.
final class ReadingEngine: StoreEngine {
    let place: String
    private let target: PostgresPlace
    private let readers: ServerReaders

    /// One connection, because a standby relay reads one thing after the other.
    private static let readerCount = 1
    private static let refusal = StorageError.closed("another relay owns the store")

    /// Creates the engine; it connects at the first read.
    init(_ session: PostgresSession) throws(StorageError) {
        place = "\(session.place)"
        target = session.place
        readers = try ServerReaders(session, count: Self.readerCount)
    }

    deinit { readers.end() }

    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        do {
            return try await readers.read(body)
        } catch {
            throw translated(error)
        }
    }

    func submit(_ requests: [WriteRequest]) -> StorageError? { Self.refusal }

    func translated(_ error: any Error) -> any Error {
        (error as? PostgresError)?.storageError(of: target) ?? error
    }

    let commitCount: UInt64 = 0
    let footprint = StoreFootprint(fileBytes: 0, walBytes: 0, freeBytes: nil)
    func checkRoom() throws(StorageError) { throw Self.refusal }
    var shortage: String? { nil }
    func optimize(_ db: Database) throws {}
    func end() { readers.end() }

    func close() async -> StorageError? {
        end()
        return nil
    }
}

extension RelayStore {
    /// Creates a read-only store at `place` for a standby relay, whoever owns the store.
    ///
    /// Reads go to the server and not to memory. The store's identity is a placeholder. Nothing is
    /// queried yet.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the process has no file descriptor
    ///   left.
    package static func reading(
        _ place: PostgresPlace, as claimant: StoreClaimant, settings: StoreSettings
    ) throws(StorageError) -> RelayStore {
        let session = PostgresSession(place: place, name: claimant.sessionName)
        let nothing = OpenedStore(
            identity: UUIDBytes(high: 0, low: 0), epoch: 0,
            horizon: LogHorizon(head: .start, settings: settings), endedDevices: EndedDevices([]))
        return RelayStore(try ReadingEngine(session), nothing, settings: settings)
    }
}
