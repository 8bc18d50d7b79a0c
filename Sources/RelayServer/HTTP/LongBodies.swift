import RelayModel
import Storage

/// Parses long bodies of clients, one at a time and in turns of their containers.
///
/// It uses a thread that yields to other requests.
struct LongBodies: Sendable {
    /// The line in which long bodies wait until they are parsed.
    let line: ReaderLine
    /// The thread that parses them.
    let thread: LongWorkThread

    /// The size in bytes from which parsing a body takes some milliseconds.
    static let least = 64 * 1024
    /// The size in bytes from which a body with conditions takes that long.
    ///
    /// To decode, check and prepare conditions takes several times as long as parsing their JSON.
    static let leastOfConditions = 16 * 1024

    /// Returns the size of a body as its parsing takes it: a byte of a mark on a letter counts as
    /// eight, because names with marks are composed before they are compared.
    static func weight(of body: [UInt8]) -> Int {
        // Shorter bodies stay below the limits whatever they hold.
        guard body.count > leastOfConditions / 8 else { return body.count }
        let heavy = body.count { byte in
            switch byte {
            // The first bytes of marks, of letters with points, and of scripts with signs.
            case 0xCC, 0xCD, 0xD6...0xD9, 0xE0...0xE2: true
            default: false
            }
        }
        return body.count + 14 * heavy
    }

    /// Returns a request with its body parsed if that is long; the caller must be authorised
    /// already.
    ///
    /// Errors in the body are reported by ``RelayRequest/jsonBody()``.
    ///
    /// - Throws: `CancellationError` if the task was cancelled while it waited.
    func parsed(
        _ request: RelayRequest, of container: ContainerKey, by party: QueryParty
    ) async throws -> RelayRequest {
        guard request.json == nil, Self.weight(of: request.body) > Self.least else {
            return request
        }
        var parsed = request
        parsed.json = try await inTurn(request.body, of: container, by: party)
        return parsed
    }

    /// Parses a text that came over a connection.
    ///
    /// - Throws: The error in the text, or `CancellationError` if the task was cancelled while it
    ///   waited.
    func parsed(
        _ text: [UInt8], of container: ContainerKey, by party: QueryParty
    ) async throws -> JSONValue {
        guard Self.weight(of: text) > Self.least else { return try JSONValue(parsing: text) }
        return try await inTurn(text, of: container, by: party).get()
    }

    /// Decodes a body with conditions, in the line for long bodies if that may take long.
    ///
    /// - Throws: What `read` throws, or `CancellationError` if the task was cancelled while it
    ///   waited.
    func reading<Value: Sendable>(
        _ request: RelayRequest, of container: ContainerKey, by party: QueryParty,
        _ read: @Sendable () throws -> Value
    ) async throws -> Value {
        guard Self.weight(of: request.body) > Self.leastOfConditions else { return try read() }
        return try await apart(of: container, by: party, read)
    }

    /// Does the work of a body that may be long; the work may wait for the store in between.
    ///
    /// - Throws: What `work` throws, or `CancellationError` if the task was cancelled while it
    ///   waited.
    func working<Value: Sendable>(
        _ request: RelayRequest, of container: ContainerKey, by party: QueryParty,
        _ work: @Sendable () async throws -> Value
    ) async throws -> Value {
        guard Self.weight(of: request.body) > Self.leastOfConditions else {
            return try await work()
        }
        return try await line.turn(of: container, by: party) {
            try await withTaskExecutorPreference(thread) { try await perform(work) }
        }
    }

    /// Runs `work` on the task's preferred executor.
    @concurrent private func perform<Value: Sendable>(
        _ work: @Sendable () async throws -> Value
    ) async throws -> Value {
        try await work()
    }

    /// Runs something that takes long, whatever the size of the body is.
    ///
    /// It may weigh conditions by an index without waiting until the index is free. This thread may
    /// wait for a judgement, because no other work needs it, and no judgement waits for this line.
    ///
    /// - Throws: What `read` throws, or `CancellationError` if the task was cancelled while it
    ///   waited.
    func apart<Value: Sendable>(
        of container: ContainerKey, by party: QueryParty = .server,
        _ read: @Sendable () throws -> Value
    ) async throws -> Value {
        try await line.turn(of: container, by: party) {
            try await withTaskExecutorPreference(thread) { try await run(read) }
        }
    }

    /// Runs `read` on the task's preferred executor.
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

    /// Parses a body on the task's preferred executor.
    @concurrent private func parse(_ body: [UInt8]) async -> Result<JSONValue, any Error> {
        Result { try JSONValue(parsing: body) }
    }
}

extension JSONValue {
    /// Returns whether the value takes more than `bytes` as text; an estimate that does not encode
    /// it.
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
