import CSQLite
import Dispatch
import Synchronization

/// The connections to one file: one that writes, and some that read what was committed last.
///
/// Readers are opened when they are needed, and whoever finds none free waits for the next one.
/// Each runs on a queue of its own, because it waits for the disk.
final class EmbeddedPool: Sendable {
    /// The file.
    let path: String
    private let writer: GuardedConnection
    private let open: @Sendable () throws -> EmbeddedConnection
    private let readers: Mutex<Readers>

    private struct Readers {
        var idle: [ReaderConnection] = []
        /// Those that somebody has.
        var out: [ReaderConnection] = []
        /// How many may still be made.
        var left: Int
        var waiting: [(number: Int, reader: CheckedContinuation<ReaderConnection?, Never>)] = []
        var number = 0
        /// Readers of before are closed when they are given back.
        var generation = 0
        var isClosed = false
    }

    /// The writer is the pool's alone from now on; `open` opens a connection that only reads.
    init(
        path: String, writer: sending EmbeddedConnection, maximumReaders: Int,
        open: @escaping @Sendable () throws -> EmbeddedConnection
    ) {
        self.path = path
        self.writer = GuardedConnection(writer)
        self.open = open
        readers = Mutex(Readers(left: max(1, maximumReaders)))
    }

    /// Runs `body` on the connection that writes, outside of any transaction.
    func write<Value>(_ body: (EmbeddedConnection) throws -> Value) rethrows -> Value {
        try writer.use(body)
    }

    /// Runs `body` on a connection that reads, which sees one commit all the while.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, also while SQLite is at work.
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

    /// Has the readers that are free closed, and the others once they are.
    func forgetReaders() {
        let idle = readers.withLock { readers in
            readers.generation += 1
            readers.left += readers.idle.count
            defer { readers.idle = [] }
            return readers.idle
        }
        for reader in idle { reader.close() }
    }

    /// Closes all; whoever reads still does so to the end, which it waits for: the writer closes
    /// last, and nobody has the file any more when this returns.
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

    /// A reader that is free; `nil` once the pool is closed.
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

    /// On the reader's queue, which closing waits for.
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

/// A connection that several threads use, one after the other.
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

/// A connection that reads, once somebody has used it, and the queue that it is used on.
///
/// The pool hands it to one at a time.
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
        // After the turn's end: whoever cancels it must not interrupt what was closed.
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

    /// Closes it once whoever reads has done so; nobody reads on it afterwards.
    func end() {
        queue.sync {
            isEnded = true
            close()
        }
    }
}

/// One use of a reader, which another thread may end.
final class ReaderTurn: Sendable {
    private struct State {
        var isCancelled = false
        /// The connection, while it is used.
        nonisolated(unsafe) var pointer: OpaquePointer?
    }

    /// Operations of SQLite's machine: some milliseconds.
    private static let operationsBetweenLooks: Int32 = 100_000

    private let state = Mutex(State())

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func begin(on connection: EmbeddedConnection) throws {
        let isCancelled = state.withLock { state in
            state.pointer = connection.pointer
            return state.isCancelled
        }
        connection.turn = self
        // Where an interruption comes just before a statement begins, SQLite forgets it.
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

    /// Has SQLite give up what it is at, and the connection refuse what comes.
    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            if let pointer = state.pointer { sqlite3_interrupt(pointer) }
        }
    }
}
