import ServiceLifecycle

/// A loop that runs until the group shuts down.
package struct LoopService: Service {
    private let body: @Sendable () async throws -> Void

    /// Makes a service of a loop, which is cancelled when the group shuts down.
    package init(_ body: @escaping @Sendable () async throws -> Void) {
        self.body = body
    }

    /// Runs the loop; throws what it throws, unless it was cancelled.
    package func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await body() }
        } catch is CancellationError {
            // The usual end of a loop.
        }
    }
}
