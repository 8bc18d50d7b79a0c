import RelayModel
import Storage

/// Parses long bodies of clients: one at a time, by turns of their containers, on a thread that
/// gives way to what others ask meanwhile.
struct LongBodies: Sendable {
    /// Where long bodies wait until they are parsed.
    let line: ReaderLine
    /// Parses them.
    let thread: LongWorkThread

    /// The bytes from which on a body takes a processor for a while, some milliseconds.
    static let least = 64 * 1024
    /// The bytes from which on the conditions in a body do: to read, check and prepare them takes
    /// some times as long as their JSON.
    static let leastOfConditions = 16 * 1024

    /// A request with its body parsed, if that is long; who made it must have been judged.
    ///
    /// What is wrong with the body is said by ``RelayRequest/jsonBody()``.
    ///
    /// - Throws: `CancellationError` if the task was cancelled while it waited.
    func parsed(
        _ request: RelayRequest, of container: ContainerKey, by party: QueryParty
    ) async throws -> RelayRequest {
        guard request.body.count > Self.least, request.json == nil else { return request }
        var parsed = request
        parsed.json = try await inTurn(request.body, of: container, by: party)
        return parsed
    }

    /// A text that came over a connection, parsed.
    ///
    /// - Throws: What is wrong with it, and `CancellationError` if the task was cancelled while it
    ///   waited.
    func parsed(
        _ text: [UInt8], of container: ContainerKey, by party: QueryParty
    ) async throws -> JSONValue {
        guard text.count > Self.least else { return try JSONValue(parsing: text) }
        return try await inTurn(text, of: container, by: party).get()
    }

    /// Reads what a body with conditions says: where that may take long, as long JSON is parsed.
    ///
    /// - Throws: What `read` throws, and `CancellationError` if the task was cancelled while it
    ///   waited.
    func reading<Value: Sendable>(
        _ request: RelayRequest, of container: ContainerKey, by party: QueryParty,
        _ read: @Sendable () throws -> Value
    ) async throws -> Value {
        guard request.body.count > Self.leastOfConditions else { return try read() }
        return try await apart(of: container, by: party, read)
    }

    /// Does what a body asks for that may be long: it may wait for the store in between.
    ///
    /// - Throws: What `work` throws, and `CancellationError` if the task was cancelled while it
    ///   waited.
    func working<Value: Sendable>(
        _ request: RelayRequest, of container: ContainerKey, by party: QueryParty,
        _ work: @Sendable () async throws -> Value
    ) async throws -> Value {
        guard request.body.count > Self.leastOfConditions else { return try await work() }
        return try await line.turn(of: container, by: party) {
            try await withTaskExecutorPreference(thread) { try await perform(work) }
        }
    }

    /// Works where the task prefers.
    @concurrent private func perform<Value: Sendable>(
        _ work: @Sendable () async throws -> Value
    ) async throws -> Value {
        try await work()
    }

    /// Does something that takes long, however short the body is that asks for it.
    ///
    /// Who weighs conditions by an index need not wait until that is free: this thread may wait for
    /// a judgement, as nobody else needs it, and no judgement may wait for those in this line.
    ///
    /// - Throws: What `read` throws, and `CancellationError` if the task was cancelled while it
    ///   waited.
    func apart<Value: Sendable>(
        of container: ContainerKey, by party: QueryParty = .server,
        _ read: @Sendable () throws -> Value
    ) async throws -> Value {
        try await line.turn(of: container, by: party) {
            try await withTaskExecutorPreference(thread) { try await run(read) }
        }
    }

    /// Reads where the task prefers.
    @concurrent private func run<Value: Sendable>(
        _ read: @Sendable () throws -> Value
    ) async throws -> Value {
        try read()
    }

    private func inTurn(
        _ body: [UInt8], of container: ContainerKey, by party: QueryParty
    ) async throws -> Result<JSONValue, any Error> {
        try await line.turn(of: container, by: party) {
            await withTaskExecutorPreference(thread) { await parse(body) }
        }
    }

    /// Parses a body where the task prefers.
    @concurrent private func parse(_ body: [UInt8]) async -> Result<JSONValue, any Error> {
        Result { try JSONValue(parsing: body) }
    }
}

extension JSONValue {
    /// Whether it takes more bytes as text; about, because it is not written for that.
    func isLonger(than bytes: Int) -> Bool {
        var left = bytes
        return !fits(&left)
    }

    private func fits(_ left: inout Int) -> Bool {
        left -= 2
        switch self {
        case .string(let text): left -= text.utf8.count
        case .array(let values):
            for value in values {
                guard value.fits(&left) else { return false }
            }
        case .object(let object):
            for (name, value) in object.members {
                left -= name.utf8.count
                guard value.fits(&left) else { return false }
            }
        case .null, .bool, .integer, .number: break
        }
        return left >= 0
    }
}
