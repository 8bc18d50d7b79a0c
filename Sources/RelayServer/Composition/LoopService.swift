import ServiceLifecycle

/// A loop that runs until the group shuts down.
package struct LoopService: Service {
    private let body: @Sendable () async throws -> Void

    /// Creates a service from a loop, which is cancelled when the group shuts down.
    package init(_ body: @escaping @Sendable () async throws -> Void) {
        self.body = body
    }

    /// Runs the loop; throws what the loop throws, except for its cancellation.
    package func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await body() }
        } catch is CancellationError {
            // A loop usually ends by cancellation.
        }
    }
}
