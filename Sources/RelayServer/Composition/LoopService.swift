import ServiceLifecycle

/// A loop that runs until the group shuts down.
struct LoopService: Service {
    let body: @Sendable () async throws -> Void

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await body() }
        } catch is CancellationError {
            // The usual end of a loop.
        }
    }
}
