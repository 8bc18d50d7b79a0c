import PostgresLink
import RelayModel
package import Storage
package import StorageSQL

/// A store on a PostgreSQL server that another process owns: it is read, and nothing is written.
final class ReadingEngine: StoreEngine {
    let place: String
    private let target: PostgresPlace
    private let readers: ServerReaders

    /// Who stands by has one connection for reading, because it reads one thing after the other.
    private static let readerCount = 1
    private static let refusal = StorageError.closed("another relay owns the store")

    /// Prepares to read; the connection is made with the first that is read.
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
    /// The store at `place` for whoever stands by for it: it can be read, whoever owns it.
    ///
    /// What is asked of it is asked of the server, and not of memory; its identity is of no store.
    /// Nothing is asked yet.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the process has no descriptor left.
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
