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

    /// A request with its body parsed, if that is long; who made it must have been judged.
    ///
    /// What is wrong with the body is said by ``RelayRequest/jsonBody()``.
    ///
    /// - Throws: `CancellationError` if the task was cancelled while it waited.
    func parsed(
        _ request: RelayRequest, of container: ContainerKey, by party: QueryParty
    ) async throws -> RelayRequest {
        guard request.body.count > Self.least, request.json == nil else { return request }
        let body = request.body
        let json = try await line.turn(of: container, by: party) {
            await withTaskExecutorPreference(thread) { await parse(body) }
        }
        var parsed = request
        parsed.json = json
        return parsed
    }

    /// Parses a body where the task prefers.
    @concurrent private func parse(_ body: [UInt8]) async -> Result<JSONValue, any Error> {
        Result { try JSONValue(parsing: body) }
    }
}
