import CSQLite
import Dispatch
import Synchronization

/// The connections to one file: one writer, and some readers that see the last commit.
///
/// Readers are opened on demand. A caller that finds none free waits for the next one. Each reader
/// runs on a queue of its own, because reading blocks on the disk.
final class EmbeddedPool: Sendable {
    /// The path of the file.
    let path: String
    private let writer: GuardedConnection
    private let open: @Sendable () throws -> EmbeddedConnection
    private let readers: Mutex<Readers>

    private struct Readers {
        var idle: [ReaderConnection] = []
        /// The readers that are in use.
        var out: [ReaderConnection] = []
        /// The number of readers that may still be opened.
        var left: Int
        var waiting: [(number: Int, reader: CheckedContinuation<ReaderConnection?, Never>)] = []
        var number = 0
        /// Readers of an older generation are closed when they are given back.
        var generation = 0
        var isClosed = false
    }

    /// Creates a pool that takes over `writer`; `open` opens a read-only connection.
    init(
        path: String, writer: sending EmbeddedConnection, maximumReaders: Int,
        open: @escaping @Sendable () throws -> EmbeddedConnection
    ) {
        self.path = path
        self.writer = GuardedConnection(writer)
        self.open = open
        readers = Mutex(Readers(left: max(1, maximumReaders)))
    }

    /// Runs `body` on the writing connection, outside of any transaction.
    func write<Value>(_ body: (EmbeddedConnection) throws -> Value) rethrows -> Value {
        try writer.use(body)
    }

    /// Runs `body` on a reading connection, which sees one commit from beginning to end.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, even while SQLite is at work.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (EmbeddedConnection) throws -> Value
    ) async throws -> Value {
        guard let reader = try await reader() else {
            throw EmbeddedError(SQLITE_MISUSE, "the connection is closed")
        }
        let turn = ReaderTurn()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                reader.queue.async { [self] in
                    let result = Result { try reader.read(turn, opening: open, body) }
                    giveBack(reader)
                    continuation.resume(with: result)
                }
            }
        } onCancel: {
            turn.cancel()
        }
    }

    /// Closes the idle readers now, and those in use when they are given back.
    func forgetReaders() {
        let idle = readers.withLock { readers in
            readers.generation += 1
            readers.left += readers.idle.count
            defer { readers.idle = [] }
            return readers.idle
        }
        for reader in idle { reader.close() }
    }

    /// Closes all connections, after waiting for the reads that are still running.
    ///
    /// The writer closes last. When this returns, no connection has the file open.
    func close() {
        let (waiting, out) = readers.withLock { readers in
            readers.isClosed = true
            defer { readers.waiting = [] }
            return (readers.waiting, readers.out)
        }
        for (_, waiter) in waiting { waiter.resume(returning: nil) }
        forgetReaders()
        for reader in out { reader.end() }
        writer.use { $0.close() }
    }

    /// Returns a free reader, or `nil` once the pool is closed.
    private func reader() async throws -> ReaderConnection? {
        let number = readers.withLock { readers in
            readers.number += 1
            return readers.number
        }
        let reader = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                take(number, continuation)
            }
        } onCancel: {
            giveUp(number)
        }
        if reader == nil, Task.isCancelled { throw CancellationError() }
        return reader
    }

    private func take(
        _ number: Int, _ continuation: CheckedContinuation<ReaderConnection?, Never>
    ) {
        let (isNow, reader) = readers.withLock { readers -> (Bool, ReaderConnection?) in
            if readers.isClosed || Task.isCancelled { return (true, nil) }
            if let reader = readers.idle.popLast() {
                readers.out.append(reader)
                return (true, reader)
            }
            if readers.left > 0 {
                readers.left -= 1
                let reader = ReaderConnection(generation: readers.generation)
                readers.out.append(reader)
                return (true, reader)
            }
            readers.waiting.append((number, continuation))
            return (false, nil)
        }
        if isNow { continuation.resume(returning: reader) }
    }

    private func giveUp(_ number: Int) {
        let waiter = readers.withLock { readers in
            readers.waiting.firstIndex { $0.number == number }
                .map { readers.waiting.remove(at: $0).reader }
        }
        waiter?.resume(returning: nil)
    }

    /// Takes a reader back; runs on the reader's queue, which `close()` waits for.
    private func giveBack(_ reader: ReaderConnection) {
        let (isOld, waiter, next) = readers.withLock { readers in
            let isOld = readers.isClosed || reader.generation != readers.generation
            let next = isOld ? ReaderConnection(generation: readers.generation) : reader
            let waiter = readers.waiting.isEmpty ? nil : readers.waiting.removeFirst().reader
            readers.out.removeAll { $0 === reader }
            if waiter != nil {
                readers.out.append(next)
            } else if isOld {
                readers.left += 1
            } else {
                readers.idle.append(reader)
            }
            return (isOld, waiter, next)
        }
        if isOld { reader.close() }
        waiter?.resume(returning: next)
    }
}

/// A connection that several threads use, one after the other, under a lock.
private final class GuardedConnection: @unchecked Sendable {
    private let connection: EmbeddedConnection
    private let turn = Mutex(())

    init(_ connection: sending EmbeddedConnection) {
        self.connection = connection
    }

    func use<Value>(_ body: (EmbeddedConnection) throws -> Value) rethrows -> Value {
        try turn.withLock { _ in try body(connection) }
    }
}

/// A reading connection, opened at its first use, with the queue that it is used on.
///
/// The pool hands it to one caller at a time.
private final class ReaderConnection: @unchecked Sendable {
    let generation: Int
    let queue = DispatchQueue(label: "belfry.reader")
    private var connection: EmbeddedConnection?
    private var isEnded = false

    init(generation: Int) {
        self.generation = generation
    }

    func read<Value>(
        _ turn: ReaderTurn, opening: () throws -> EmbeddedConnection,
        _ body: (EmbeddedConnection) throws -> Value
    ) throws -> Value {
        guard !isEnded else { throw EmbeddedError(SQLITE_MISUSE, "the connection is closed") }
        let connection = try self.connection ?? opening()
        self.connection = connection
        // This runs after the end of the turn, because a late cancellation must not interrupt a
        // connection that is already closed.
        defer { if connection.isInsideTransaction { close() } }
        try turn.begin(on: connection)
        defer { turn.end(on: connection) }
        do {
            return try connection.inTransaction(.deferred) { try body(connection) }
        } catch let error as EmbeddedError where error.code == SQLITE_INTERRUPT {
            throw turn.isCancelled ? CancellationError() : error
        }
    }

    func close() {
        connection?.close()
        connection = nil
    }

    /// Closes the connection after the current read; later reads throw.
    func end() {
        queue.sync {
            isEnded = true
            close()
        }
    }
}

/// One use of a reader, which another thread may cancel.
final class ReaderTurn: Sendable {
    private struct State {
        var isCancelled = false
        /// The connection's handle while it is in use.
        nonisolated(unsafe) var pointer: OpaquePointer?
    }

    /// The number of SQLite's virtual machine operations between two checks: some milliseconds.
    private static let operationsBetweenLooks: Int32 = 100_000

    private let state = Mutex(State())

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func begin(on connection: EmbeddedConnection) throws {
        let isCancelled = state.withLock { state in
            state.pointer = connection.pointer
            return state.isCancelled
        }
        connection.turn = self
        // SQLite forgets an interruption that comes just before a statement begins, so the progress
        // handler checks as well.
        sqlite3_progress_handler(
            connection.pointer, Self.operationsBetweenLooks,
            { place in
                guard let place else { return 0 }
                let turn = Unmanaged<ReaderTurn>.fromOpaque(place).takeUnretainedValue()
                return turn.isCancelled ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
        if isCancelled {
            end(on: connection)
            throw CancellationError()
        }
    }

    func end(on connection: EmbeddedConnection) {
        sqlite3_progress_handler(connection.pointer, 0, nil, nil)
        connection.turn = nil
        state.withLock { $0.pointer = nil }
    }

    /// Interrupts the running statement, and lets the connection refuse later ones.
    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            if let pointer = state.pointer { sqlite3_interrupt(pointer) }
        }
    }
}
