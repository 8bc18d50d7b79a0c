#if PostgreSQL
    import CPQ
#else
    import CNoPQ
#endif

/// One connection to a server.
///
/// It is used by one thread alone, and that protects it.
package final class PostgresConnection: @unchecked Sendable {
    let handle: OpaquePointer
    private let warningCounts: UnsafeMutablePointer<Int32>
    let wake: PostgresWake
    /// How much time has passed.
    package let watch: @Sendable () -> Duration
    let isStopped: @Sendable () -> Bool
    /// Whether notifications have come that nobody has asked for since.
    private var wasNotified = false
    /// Which history the server writes, as far as whoever made the connection has asked.
    package var timeline: ServerTimeline?

    /// Connects, which waits.
    ///
    /// Each address of each host has the time that ``timeout(_:)`` says, also where a server takes
    /// the connection and says nothing, or stops in the middle of signing in. A look-up of a name
    /// waits too, as long as the machine's resolver does.
    ///
    /// - Parameters:
    ///   - parameters: what libpq is told.
    ///   - wake: wakes waits for answers.
    ///   - watch: how much time has passed.
    ///   - isStopped: whether nobody wants an answer any more.
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

    /// How many seconds an address of a host has until it has let the session in, if a URL says so
    /// or leaves it open.
    ///
    /// libpq takes 0 and less for no end, which nobody who waits would see: they get the longest
    /// time, as whatever is longer.
    package static func timeout(_ said: String?) -> String {
        guard let seconds = said.flatMap({ Int($0.filter { !$0.isWhitespace }) }) else {
            return "\(usualTimeout)"
        }
        return "\(seconds > 0 ? min(seconds, longestTimeout) : longestTimeout)"
    }

    private static let usualTimeout = 5
    /// A server that starts TLS and asks a directory for the role needs less.
    private static let longestTimeout = 60

    deinit {
        PQfinish(handle)
        warningCounts.deallocate()
    }

    /// How many warnings the server sent.
    package var warnings: Int { Int(warningCounts[Int(CPQ_ALL)]) }
    /// How many of them say that something lacks which is needed (55000).
    package var warningsOfWhatLacks: Int { Int(warningCounts[Int(CPQ_OF_WHAT_LACKS)]) }

    /// The version, as 150018.
    package var serverVersion: Int { Int(PQserverVersion(handle)) }
    /// What the database's texts are written in, as `UTF8`; empty where the server does not say.
    package var serverEncoding: String {
        PQparameterStatus(handle, "server_encoding").map { String(cString: $0) } ?? ""
    }
    /// The number of the server's process, as the server told it when the connection was made.
    package var serverProcess: Int { Int(PQbackendPID(handle)) }
    /// The address of this end, as `10.0.0.5`; the loopback's where no network is between.
    package var ownAddress: String {
        var buffer = [CChar](repeating: 0, count: Int(CPQ_ADDRESS_BYTES))
        guard cpq_own_address(PQsocket(handle), &buffer, Int32(buffer.count)) != 0 else {
            return "127.0.0.1"
        }
        let digits = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return String(decoding: digits, as: UTF8.self)
    }
    /// The database's name.
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

    /// How long an answer may take, unless a caller knows better.
    package static let patience = Duration.seconds(30)
    /// How long an answer may be, in bytes, unless it may take any time as well: more than a server
    /// has to say of a million tables.
    package static let mostBytes = 256 << 20
    /// How many answers one text of statements may have.
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
                        state: "", message: "the server's answer is longer than any should be")
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

    /// About what a row takes in memory.
    private static func size(of row: Int32, of result: OpaquePointer) -> Int {
        (0..<PQnfields(result)).reduce(32) { size, column in
            size + 16 + Int(PQgetlength(result, row, column))
        }
    }

    /// Runs one statement and returns its rows as they are written, `nil` where there is no value.
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

    /// Asks for rows that ``nextRow()`` reads one by one; nothing else is asked for before the end.
    package func beginRows(_ sql: String) throws { try send(sql, []) }

    /// The next row as it is written, `nil` where there is no value; or `nil` after the last one.
    ///
    /// What nobody reads waits in the server, however large it is.
    package func nextRow() throws -> [[UInt8]?]? {
        var refusal: PostgresError?
        var answers = 0
        while true {
            try awaitResult(since: watch(), within: nil)
            guard let result = PQgetResult(handle) else { break }
            defer { PQclear(result) }
            switch PQresultStatus(result) {
            case PGRES_SINGLE_TUPLE: return Self.row(0, of: result)
            // The end, which has no row.
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
        // What replicates understands no parameters.
        let isSent =
            values.isEmpty
            ? PQsendQuery(handle, sql)
            : Self.withTexts(values) {
                PQsendQueryParams(handle, sql, Int32(values.count), nil, $0, nil, nil, 0)
            }
        // Row by row: libpq would hold all of an answer, however long a server makes it.
        guard isSent == 1, PQsetSingleRowMode(handle) == 1 else { throw failure }
    }

    /// What is said of a server that begins to copy though nobody asked for it: libpq says so each
    /// time that it is asked for a result, without an end.
    static let unasked = PostgresError(
        state: "", message: "the server answers with data that nobody asked for")

    /// Counts an answer of a server, which could give one after the other without an end.
    private static func note(_ answers: inout Int) throws {
        answers += 1
        guard answers <= mostAnswers else {
            throw PostgresError(state: "", message: "the server's answers have no end")
        }
    }

    /// Waits until a result has come, or none is to come.
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

    /// Hands over the rows of what was sent, each as a result of its own.
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
        // Of what is a table of another kind than is needed, the reason stands below the message.
        guard ["22023", "42809"].contains(state),
            let detail = PQresultErrorField(result, 0x44).map({ String(cString: $0) })
        else { return PostgresError(state: state, message: line) }
        return PostgresError(state: state, message: "\(line): \(PostgresError.line(detail))")
    }

    // MARK: The stream

    /// The next message that has come, or `nil` if none has.
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

    /// Reads what the socket has.
    package func receive() throws {
        guard takeInput() else { throw failure }
    }

    /// Has libpq read what has come; says whether the connection is there still.
    ///
    /// It reads as much as it has room for, 8 KiB at the least. What TLS has deciphered beyond
    /// that, of a record of 16 KiB at the most, is not seen by whoever waits for the socket.
    func takeInput() -> Bool {
        guard PQconsumeInput(handle) == 1 else { return false }
        // If that finds the connection's end, what came before is read first, which says why.
        if PQsslInUse(handle) != 0 { _ = PQconsumeInput(handle) }
        noteNotifications()
        return true
    }

    /// Takes the notifications that have come, whatever they say; returns whether any had.
    @discardableResult package func takeNotifications() -> Bool {
        noteNotifications()
        defer { wasNotified = false }
        return wasNotified
    }

    /// Lets go of notifications, which libpq would keep for as long as nobody takes them.
    private func noteNotifications() {
        while let notification = PQnotifies(handle) {
            PQfreemem(notification)
            wasNotified = true
        }
    }

    /// Sends a message to whoever streams.
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
