import PostgresLink
import Storage
import StorageSQL
import Synchronization

/// The reading connections, each with a thread of its own, because libpq blocks.
///
/// A read gets an idle connection, or else the first that becomes idle. So a long read blocks no
/// other one as long as another connection is left. A lost connection is replaced at the next read
/// on it.
final class ServerReaders: Sendable {
    /// One requested read.
    private struct Job: Sendable {
        let number: UInt64
        let run: @Sendable (Reader) -> Void
        let refuse: @Sendable () -> Void
    }

    private struct State {
        /// The idle readers; the last element is the next to be used.
        var idle: [Reader]
        /// The reads that wait for a reader, in order; empty as long as a reader is idle.
        var waiting: [Job] = []
        var lastNumber: UInt64 = 0
        var hasEnded = false
    }

    private let session: PostgresSession
    private let readers: [Reader]
    private let state: Mutex<State>

    /// Creates the readers and starts their threads.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the process has no file descriptor
    ///   left.
    init(_ session: PostgresSession, count: Int) throws(StorageError) {
        var readers: [Reader] = []
        for _ in 0..<max(1, count) {
            guard let reader = Reader(session) else {
                throw .inaccessible(
                    path: "\(session.place)", reason: "the process has no file descriptor left")
            }
            readers.append(reader)
        }
        self.session = session
        self.readers = readers
        state = Mutex(State(idle: readers))
    }

    /// The number of reads that wait for a connection.
    var waiting: Int { state.withLock { $0.waiting.count } }

    /// Runs `body` in a transaction that sees one commit.
    ///
    /// A task that is cancelled while it waits for a connection stops waiting. A read that has
    /// begun runs to its end, within the server's time limit.
    ///
    /// - Throws: `CancellationError` if nothing was read; what `body` throws.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        let asked = session.watch()
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                submit(
                    Job(
                        number: number,
                        run: { reader in
                            continuation.resume(
                                with: Result { try reader.read(body, asked: asked) })
                        },
                        refuse: { continuation.resume(throwing: CancellationError()) }))
            }
        } onCancel: {
            withdraw(number)
        }
    }

    /// Refuses a waiting read, unless it has begun already.
    private func withdraw(_ number: UInt64) {
        let job = state.withLock { state in
            state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0) }
        }
        job?.refuse()
    }

    private func submit(_ job: Job) {
        let (reader, isRefused) = state.withLock { state -> (Reader?, Bool) in
            // Checked under the lock: a task that is cancelled later finds its read among the
            // waiting ones.
            if state.hasEnded || Task.isCancelled { return (nil, true) }
            if let reader = state.idle.popLast() { return (reader, false) }
            state.waiting.append(job)
            return (nil, false)
        }
        if isRefused { return job.refuse() }
        guard let reader else { return }
        let isTaken = reader.thread.add { [self] in
            var next: Job? = job
            while let job = next {
                job.run(reader)
                next = self.next(for: reader)
            }
        }
        if !isTaken { refuse(job) }
    }

    /// Returns the next read of a reader, which becomes idle if none waits.
    private func next(for reader: Reader) -> Job? {
        state.withLock { state -> Job? in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.idle.append(reader)
            return nil
        }
    }

    /// Refuses a read that an ended thread did not take, and all waiting reads.
    private func refuse(_ job: Job) {
        let waiting = state.withLock { state -> [Job] in
            defer { state.waiting = [] }
            return state.waiting
        }
        for job in [job] + waiting { job.refuse() }
    }

    /// Ends the threads after the reads that they have taken, and closes their connections.
    func end() {
        state.withLock { $0.hasEnded = true }
        for reader in readers { reader.end() }
    }
}

/// One reading connection, which only its thread uses.
private final class Reader: Sendable {
    /// The state of the thread.
    private final class Hold: @unchecked Sendable {
        var connection: ServerConnection?
        /// Why the last attempt to connect failed, if it took long, and when that was known.
        var absence: (error: PostgresError, since: Duration)?
    }

    /// The time after which a failed attempt counts as long; a server that refuses connections,
    /// such as one that is restarting, answers sooner, and is tried again.
    private static let longest = Duration.seconds(1)

    let thread: PostgresThread
    private let session: PostgresSession
    private let hold = Hold()

    init?(_ session: PostgresSession) {
        guard let thread = PostgresThread() else { return nil }
        self.thread = thread
        self.session = session
        thread.start()
    }

    /// Runs `body`, on the thread; `asked` is the time at which the read was requested.
    func read<Value>(_ body: (Database) throws -> Value, asked: Duration) throws -> Value {
        // A read that waited during a long failed attempt fails too. Otherwise it would wait as
        // long again, and the last one as often as there are others before it.
        if let absence = hold.absence, asked < absence.since { throw absence.error }
        do {
            return try readOnce(body)
        } catch let error as PostgresError where [.lost, .outdated].contains(error.verdict) {
            hold.connection = nil
            if hold.absence != nil { throw error }
            // Nothing was written, so the read can be repeated. So readers do not notice a restart
            // of the server, a failover, or a newer version that starts beside this one.
            return try readOnce(body)
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
