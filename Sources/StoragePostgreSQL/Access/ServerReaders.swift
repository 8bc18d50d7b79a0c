import PostgresLink
import Storage
import StorageSQL
import Synchronization

/// Connections for reading, each with a thread of its own, because libpq waits.
///
/// Whoever reads gets one that reads nothing, or else the first that has done what it does: what
/// takes long keeps nobody waiting as long as another connection is left. One that was lost is made
/// anew with the next that is asked of it.
final class ServerReaders: Sendable {
    /// What somebody wants to read.
    private struct Job: Sendable {
        let number: UInt64
        let run: @Sendable (Reader) -> Void
        let refuse: @Sendable () -> Void
    }

    private struct State {
        /// Those that read nothing; the one that read last comes first.
        var idle: [Reader]
        /// What waits for one of them, in its order; nothing as long as one is idle.
        var waiting: [Job] = []
        var lastNumber: UInt64 = 0
        var hasEnded = false
    }

    private let session: PostgresSession
    private let readers: [Reader]
    private let state: Mutex<State>

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
        self.session = session
        self.readers = readers
        state = Mutex(State(idle: readers))
    }

    /// How many wait for a connection.
    var waiting: Int { state.withLock { $0.waiting.count } }

    /// Runs `body` in a transaction that reads one commit.
    ///
    /// Whose task is cancelled while it waits for a connection waits no longer. What is being read
    /// is read to its end, for which the server sets a time.
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

    /// Refuses what waits under a number, if it waits still.
    private func withdraw(_ number: UInt64) {
        let job = state.withLock { state in
            state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0) }
        }
        job?.refuse()
    }

    private func submit(_ job: Job) {
        let (reader, isRefused) = state.withLock { state -> (Reader?, Bool) in
            // Asked under the lock: who is cancelled later is found among those who wait.
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

    /// What a connection reads next; it is idle if nothing waits.
    private func next(for reader: Reader) -> Job? {
        state.withLock { state -> Job? in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.idle.append(reader)
            return nil
        }
    }

    /// Refuses what a thread did not take that is at its end, and what may wait for it alone.
    private func refuse(_ job: Job) {
        let waiting = state.withLock { state -> [Job] in
            defer { state.waiting = [] }
            return state.waiting
        }
        for job in [job] + waiting { job.refuse() }
    }

    /// Ends the threads once they have done what was asked of them, and the connections with them.
    func end() {
        state.withLock { $0.hasEnded = true }
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

    let thread: PostgresThread
    private let session: PostgresSession
    private let hold = Hold()

    init?(_ session: PostgresSession) {
        guard let thread = PostgresThread() else { return nil }
        self.thread = thread
        self.session = session
        thread.start()
    }

    /// Runs `body` for whoever asked at a moment; on the thread.
    func read<Value>(_ body: (Database) throws -> Value, asked: Duration) throws -> Value {
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
