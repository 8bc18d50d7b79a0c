import PostgresLink
import Storage
import StorageSQL
import Synchronization

/// Connections for reading, each with a thread of its own, because libpq waits.
///
/// Whoever reads gets the one on which fewest wait. A connection that was lost is made anew with
/// the next that is asked of it.
final class ServerReaders: Sendable {
    private let readers: [Reader]

    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the process has no descriptor left.
    init(_ session: PostgresSession, count: Int) throws(StorageError) {
        var readers: [Reader] = []
        for _ in 0..<max(1, count) {
            guard let reader = Reader(session) else {
                throw .inaccessible(
                    path: "\(session.place)", reason: "the process has no descriptor left")
            }
            readers.append(reader)
        }
        self.readers = readers
    }

    /// Runs `body` in a transaction that reads one commit.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        let reader = readers.min { $0.waiting < $1.waiting } ?? readers[0]
        return try await reader.read(body)
    }

    /// Ends the threads once they have done what was asked of them, and the connections with them.
    func end() {
        for reader in readers { reader.end() }
    }
}

/// One connection for reading; its thread alone uses it.
private final class Reader: Sendable {
    /// What belongs to the thread.
    private final class Hold: @unchecked Sendable {
        var connection: ServerConnection?
        /// Why no connection could be made last, if that took long, and when it was known.
        var absence: (error: PostgresError, since: Duration)?
    }

    /// A server that refuses connections, as one that restarts, answers sooner, and is asked again.
    private static let longest = Duration.seconds(1)

    private let session: PostgresSession
    private let thread: PostgresThread
    private let hold = Hold()
    private let count = Atomic<Int>(0)

    init?(_ session: PostgresSession) {
        guard let thread = PostgresThread() else { return nil }
        self.thread = thread
        self.session = session
        thread.start()
    }

    /// How many read here, or wait for it.
    var waiting: Int { count.load(ordering: .relaxed) }

    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        count.wrappingAdd(1, ordering: .relaxed)
        defer { count.wrappingSubtract(1, ordering: .relaxed) }
        try Task.checkCancellation()
        let asked = session.watch()
        return try await thread.run { [self] in
            // Whoever waited meanwhile would wait as long again, and the last as often as there are
            // others before it.
            if let absence = hold.absence, asked < absence.since { throw absence.error }
            do {
                return try readOnce(body)
            } catch let error as PostgresError where [.lost, .outdated].contains(error.verdict) {
                hold.connection = nil
                if hold.absence != nil { throw error }
                // Nothing was written, so that it may be asked again: a restart of the server, a
                // failover, or a newer version that starts beside this one, is not told to whoever
                // reads.
                return try readOnce(body)
            }
        }
    }

    private func readOnce<Value>(_ body: (Database) throws -> Value) throws -> Value {
        let connection = try current ?? connect()
        do {
            try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            let value = try body(Database(connection))
            _ = try connection.commit()
            return value
        } catch {
            connection.rollBack()
            if connection.isBroken { hold.connection = nil }
            throw error
        }
    }

    /// The connection, unless its server is no longer the primary.
    private var current: ServerConnection? {
        hold.connection.flatMap { session.isCurrent($0.pipeline.connection) ? $0 : nil }
    }

    private func connect() throws -> ServerConnection {
        let began = session.watch()
        hold.absence = nil
        do {
            let connection = try session.connectAgain(limits: PostgresSession.readingLimits)
            hold.connection = connection
            return connection
        } catch let error as PostgresError {
            let now = session.watch()
            if now - began > Self.longest { hold.absence = (error, now) }
            throw error
        }
    }

    func end() {
        thread.add { [hold] in hold.connection = nil }
        thread.end()
    }
}
