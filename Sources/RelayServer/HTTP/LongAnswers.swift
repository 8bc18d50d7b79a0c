import RelayModel

/// Forms and writes long answers on a thread that gives way to other requests.
///
/// An answer of some megabytes takes a tenth of a second. The threads on which tasks run are as few
/// as the processors, so that a few clients with such answers would stop them for everybody.
struct LongAnswers: Sendable {
    /// The thread that forms and writes long answers, one after the other.
    let thread: LongWorkThread

    /// The number of records from which it takes some milliseconds to form an answer.
    static let leastRecords = 256
    /// The size in bytes from which it takes some milliseconds to write an answer.
    static let leastBytes = 128 * 1024

    /// Returns what `form` makes of a number of records.
    ///
    /// - Throws: What `form` throws.
    func forming<Value: Sendable>(
        _ records: Int, _ form: @Sendable () throws -> Value
    ) async throws -> Value {
        guard records >= Self.leastRecords else { return try form() }
        return try await withTaskExecutorPreference(thread) { try await run(form) }
    }

    /// Returns the answer that has `json` as its body.
    func answer(_ json: JSONValue) async -> RelayAnswer {
        guard json.isLonger(than: Self.leastBytes) else { return RelayAnswer(json: json) }
        return await withTaskExecutorPreference(thread) { await written(json) }
    }

    /// Runs `form` on the task's preferred executor.
    @concurrent private func run<Value: Sendable>(
        _ form: @Sendable () throws -> Value
    ) async throws -> Value {
        try form()
    }

    /// Writes an answer on the task's preferred executor.
    @concurrent private func written(_ json: JSONValue) async -> RelayAnswer {
        RelayAnswer(json: json)
    }
}
