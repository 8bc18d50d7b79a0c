#if PostgreSQL
    import CPQ
#else
    import CNoPQ
#endif

/// One connection to a server.
///
/// Concurrency: only one thread may use it.
package final class PostgresConnection: @unchecked Sendable {
    let handle: OpaquePointer
    private let warningCounts: UnsafeMutablePointer<Int32>
    let wake: PostgresWake
    /// A clock: the time since some fixed moment.
    package let watch: @Sendable () -> Duration
    let isStopped: @Sendable () -> Bool
    /// Whether notifications have arrived since they were last asked for.
    private var wasNotified = false
    /// The server's timeline, if the code that made the connection has asked for it.
    package var timeline: ServerTimeline?

    /// Connects to a server; blocks.
    ///
    /// Each address of each host has the time of ``timeout(_:)``, even if a server accepts the
    /// connection and then sends nothing, or stops during the sign-in. A look-up of a name blocks
    /// too, as long as the machine's resolver does.
    ///
    /// - Parameters:
    ///   - parameters: The connection parameters for libpq.
    ///   - wake: Wakes the thread out of its waits.
    ///   - watch: A clock: the time since some fixed moment.
    ///   - isStopped: Whether answers are no longer needed.
    /// - Throws: ``PostgresError`` without a state.
    package init(
        _ parameters: [String: String], wake: PostgresWake,
        watch: @escaping @Sendable () -> Duration,
        isStopped: @escaping @Sendable () -> Bool
    ) throws {
        var parameters = parameters
        parameters["connect_timeout"] = Self.timeout(parameters["connect_timeout"])
        let pairs = parameters.sorted { $0.key < $1.key }
        guard
            let handle = Self.withTexts(
                pairs.map(\.key),
                { keys in
                    Self.withTexts(pairs.map(\.value)) { PQconnectdbParams(keys, $0, 0) }
                })
        else { throw PostgresError(state: "", message: "out of memory") }
        guard PQstatus(handle) == CONNECTION_OK else {
            let failure = PostgresError(connecting: String(cString: PQerrorMessage(handle)))
            PQfinish(handle)
            throw failure
        }
        PQsetnonblocking(handle, 1)
        self.handle = handle
        warningCounts = .allocate(capacity: Int(CPQ_WARNINGS))
        warningCounts.initialize(repeating: 0, count: Int(CPQ_WARNINGS))
        cpq_count_warnings(handle, warningCounts)
        self.wake = wake
        self.watch = watch
        self.isStopped = isStopped
    }

    /// Returns how many seconds each address of a host has until the session is established.
    ///
    /// `said` is the value in the URL, if any. libpq takes 0 and less for no limit. Such values get
    /// the longest time, as do longer ones.
    package static func timeout(_ said: String?) -> String {
        guard let seconds = said.flatMap({ Int($0.filter { !$0.isWhitespace }) }) else {
            return "\(usualTimeout)"
        }
        return "\(seconds > 0 ? min(seconds, longestTimeout) : longestTimeout)"
    }

    private static let usualTimeout = 5
    /// A server that uses TLS and asks a directory for the role needs less.
    private static let longestTimeout = 60

    deinit {
        PQfinish(handle)
        warningCounts.deallocate()
    }

    /// The number of warnings that the server sent.
    package var warnings: Int { Int(warningCounts[Int(CPQ_ALL)]) }
    /// The number of warnings with SQLSTATE 55000 (a needed object is not in the right state).
    package var warningsOfWhatLacks: Int { Int(warningCounts[Int(CPQ_OF_WHAT_LACKS)]) }

    /// The server's version, such as 150018.
    package var serverVersion: Int { Int(PQserverVersion(handle)) }
    /// The encoding of the database, such as `UTF8`; empty if the server does not say.
    package var serverEncoding: String {
        PQparameterStatus(handle, "server_encoding").map { String(cString: $0) } ?? ""
    }
    /// The ID of the server's process, as reported when the connection was made.
    package var serverProcess: Int { Int(PQbackendPID(handle)) }
    /// The address of this end, such as `10.0.0.5`; the loopback address if no network is used.
    package var ownAddress: String {
        var buffer = [CChar](repeating: 0, count: Int(CPQ_ADDRESS_BYTES))
        guard cpq_own_address(PQsocket(handle), &buffer, Int32(buffer.count)) != 0 else {
            return "127.0.0.1"
        }
        let digits = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return String(decoding: digits, as: UTF8.self)
    }
    /// The name of the database.
    package var database: String { String(cString: PQdb(handle)) }

    static func withTexts<Result>(
        _ texts: [String?], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        let copies = texts.map { text in text.map { copy(of: $0) } }
        defer { for copy in copies { copy?.deallocate() } }
        var pointers = copies.map { $0.map { UnsafePointer($0) } }
        pointers.append(nil)
        return body(pointers)
    }

    private static func copy(of text: String) -> UnsafeMutablePointer<CChar> {
        let bytes = text.utf8CString
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
        for (index, byte) in bytes.enumerated() { copy[index] = byte }
        return copy
    }

    var failure: PostgresError {
        PostgresError(
            state: "", message: PostgresError.line(String(cString: PQerrorMessage(handle))))
    }

    // MARK: Commands

    /// How long an answer may take by default.
    package static let patience = Duration.seconds(30)
    /// The maximum size of an answer in bytes, unless its time is unlimited; more than a server has
    /// to say about a million tables.
    package static let mostBytes = 256 << 20
    /// The maximum number of results for one text of statements.
    private static let mostAnswers = 1000

    /// Runs one statement and returns its rows.
    @discardableResult package func query(
        _ sql: String, _ values: [String?] = [], within patience: Duration? = patience,
        atMost bytes: Int = mostBytes, meanwhile: () throws -> Void = {}
    ) throws -> [[String?]] {
        var rows: [[String?]] = []
        var room = patience == nil ? Int.max : bytes
        try send(sql, values)
        try results(within: patience, meanwhile: meanwhile) { result in
            for row in 0..<PQntuples(result) {
                room -= Self.size(of: row, of: result)
                guard room >= 0 else {
                    throw PostgresError(
                        state: "", message: "the server's answer is too long")
                }
                rows.append(
                    (0..<PQnfields(result)).map { column in
                        PQgetisnull(result, row, column) != 0
                            ? nil : String(cString: PQgetvalue(result, row, column))
                    })
            }
        }
        return rows
    }

    /// Returns the approximate size of a row in memory.
    private static func size(of row: Int32, of result: OpaquePointer) -> Int {
        (0..<PQnfields(result)).reduce(32) { size, column in
            size + 16 + Int(PQgetlength(result, row, column))
        }
    }

    /// Runs one statement and returns its rows as bytes, `nil` for NULL.
    package func rows(_ sql: String, _ values: [String?] = []) throws -> [[[UInt8]?]] {
        var rows: [[[UInt8]?]] = []
        try send(sql, values)
        try results(within: nil) { result in
            for row in 0..<PQntuples(result) { rows.append(Self.row(row, of: result)) }
        }
        return rows
    }

    private static func row(_ row: Int32, of result: OpaquePointer) -> [[UInt8]?] {
        (0..<PQnfields(result)).map { column in
            guard PQgetisnull(result, row, column) == 0 else { return nil }
            let length = Int(PQgetlength(result, row, column))
            return Array(
                UnsafeRawBufferPointer(start: PQgetvalue(result, row, column), count: length))
        }
    }

    /// Starts a query whose rows ``nextRow()`` reads one by one; no other may be started before its
    /// end.
    package func beginRows(_ sql: String) throws { try send(sql, []) }

    /// Returns the next row as bytes, with `nil` for NULL, or `nil` after the last row.
    ///
    /// Rows that are not read yet wait in the server, however many there are.
    package func nextRow() throws -> [[UInt8]?]? {
        var refusal: PostgresError?
        var answers = 0
        while true {
            try awaitResult(since: watch(), within: nil)
            guard let result = PQgetResult(handle) else { break }
            defer { PQclear(result) }
            switch PQresultStatus(result) {
            case PGRES_SINGLE_TUPLE: return Self.row(0, of: result)
            // The end of the rows, which is a result without a row.
            case PGRES_TUPLES_OK: break
            case PGRES_COPY_IN, PGRES_COPY_OUT: throw Self.unasked
            default: refusal = refusal ?? Self.error(of: result)
            }
            try Self.note(&answers)
        }
        if let refusal { throw refusal }
        return nil
    }

    private func send(_ sql: String, _ values: [String?]) throws {
        // Replication commands have no parameters.
        let isSent =
            values.isEmpty
            ? PQsendQuery(handle, sql)
            : Self.withTexts(values) {
                PQsendQueryParams(handle, sql, Int32(values.count), nil, $0, nil, nil, 0)
            }
        // In single-row mode, because otherwise libpq would collect the whole answer, whatever its
        // size.
        guard isSent == 1, PQsetSingleRowMode(handle) == 1 else { throw failure }
    }

    /// The error for a server that begins a copy without a request.
    ///
    /// libpq would then return the same result at each call, without end.
    static let unasked = PostgresError(
        state: "", message: "the server answers with data that was not asked for")

    /// Counts a result, because a hostile server could send results without end.
    private static func note(_ answers: inout Int) throws {
        answers += 1
        guard answers <= mostAnswers else {
            throw PostgresError(state: "", message: "the server sends answers without end")
        }
    }

    /// Waits until a result has arrived, or no further one is expected.
    private func awaitResult(
        since start: Duration, within patience: Duration?, meanwhile: () throws -> Void = {}
    ) throws {
        while PQflush(handle) > 0 || PQisBusy(handle) != 0 {
            if isStopped() { throw CancellationError() }
            if let patience, watch() - start > patience {
                throw PostgresError.noAnswer(within: patience)
            }
            wake.wait(
                socket: PQsocket(handle), toRead: true, toWrite: PQflush(handle) > 0,
                for: .seconds(1))
            guard takeInput() else { throw failure }
            try meanwhile()
        }
    }

    /// Passes each row of the answer to `body`, as a result of its own.
    private func results(
        within patience: Duration?, meanwhile: () throws -> Void = {},
        _ body: (OpaquePointer) throws -> Void
    ) throws {
        let start = watch()
        var refusal: PostgresError?
        var answers = 0
        while true {
            try awaitResult(since: start, within: patience, meanwhile: meanwhile)
            guard let result = PQgetResult(handle) else { break }
            defer { PQclear(result) }
            switch PQresultStatus(result) {
            case PGRES_SINGLE_TUPLE:
                // The rest is read to the end, so that the connection can be used again.
                if refusal == nil { try body(result) }
                continue
            case PGRES_TUPLES_OK, PGRES_COMMAND_OK: break
            case PGRES_COPY_BOTH: return
            case PGRES_COPY_IN, PGRES_COPY_OUT: throw Self.unasked
            default: refusal = refusal ?? Self.error(of: result)
            }
            try Self.note(&answers)
        }
        if let refusal { throw refusal }
    }

    static func error(of result: OpaquePointer) -> PostgresError {
        let state = PQresultErrorField(result, 0x43).map { String(cString: $0) } ?? ""
        let message =
            PQresultErrorField(result, 0x4D).map { String(cString: $0) }
            ?? String(cString: PQresultErrorMessage(result))
        let line = PostgresError.line(message)
        // For a table of the wrong kind, the reason is in the detail below the message.
        guard ["22023", "42809"].contains(state),
            let detail = PQresultErrorField(result, 0x44).map({ String(cString: $0) })
        else { return PostgresError(state: state, message: line) }
        return PostgresError(state: state, message: "\(line): \(PostgresError.line(detail))")
    }

    // MARK: The stream

    /// Returns the next message that has arrived; `nil` if none has.
    ///
    /// - Throws: ``PostgresError`` if the stream has ended.
    package func message() throws -> [UInt8]? {
        var buffer: UnsafeMutablePointer<CChar>?
        let length = PQgetCopyData(handle, &buffer, 1)
        guard length <= 0 else {
            defer { PQfreemem(buffer) }
            return Array(UnsafeRawBufferPointer(start: buffer, count: Int(length)))
        }
        switch length {
        case 0: return nil
        case -1:
            guard let result = PQgetResult(handle) else { throw failure }
            defer { PQclear(result) }
            if PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_COPY_IN
            {
                throw PostgresError(state: "", message: "the server ended the stream")
            }
            throw Self.error(of: result)
        default: throw failure
        }
    }

    /// Reads what has arrived on the socket.
    package func receive() throws {
        guard takeInput() else { throw failure }
    }

    /// Lets libpq read what has arrived; returns `false` if the connection is lost.
    ///
    /// libpq reads as much as its buffer holds, at least 8 KiB. A TLS record has up to 16 KiB, and
    /// deciphered bytes that were not read are not visible on the socket.
    func takeInput() -> Bool {
        guard PQconsumeInput(handle) == 1 else { return false }
        // If this finds the end of the connection, the earlier bytes are still read first, and may
        // say why.
        if PQsslInUse(handle) != 0 { _ = PQconsumeInput(handle) }
        noteNotifications()
        return true
    }

    /// Removes the notifications that have arrived, whatever they say; returns whether there were
    /// any.
    @discardableResult package func takeNotifications() -> Bool {
        noteNotifications()
        defer { wasNotified = false }
        return wasNotified
    }

    /// Removes notifications from libpq, which would keep them otherwise.
    private func noteNotifications() {
        while let notification = PQnotifies(handle) {
            PQfreemem(notification)
            wasNotified = true
        }
    }

    /// Sends a message into the stream.
    package func put(_ bytes: [UInt8]) throws {
        let outcome = bytes.withUnsafeBytes { raw in
            PQputCopyData(
                handle, raw.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(raw.count))
        }
        guard outcome >= 0, PQflush(handle) >= 0 else { throw failure }
    }

    /// Waits for the server, for a signal, or until `time` has passed.
    package func wait(toRead: Bool, for time: Duration) {
        let isUnwritten = PQflush(handle) > 0
        wake.wait(
            socket: PQsocket(handle), toRead: toRead || isUnwritten, toWrite: isUnwritten,
            for: time)
    }
}
