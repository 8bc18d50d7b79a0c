package import Logging
import ServiceLifecycle

/// Runs relays one after the other in one process.
///
/// It can be ended at any time: while a relay stands by for its store, which may take days, or
/// while it serves. After a relay has handed its store over, the stage creates a new one, which
/// stands by. Failures to do so are retried, because the process is known to have worked before.
package actor RelayStage {
    private let make: @Sendable () async throws -> Relay
    private let clock: any Clock<Duration>
    private let logger: Logger
    private var opening: Task<Relay, any Error>?
    private var relay: Relay?
    private var serving: ServiceGroup?
    private var isEnding = false

    /// The pause after a failure to stand by again, and the number of failures after which the
    /// process ends; together this bridges several restarts of a database.
    private static let pause = Duration.seconds(1)
    private static let attempts = 60

    /// Creates a stage without a relay; `make` creates the first relay and each one after it.
    package init(
        clock: any Clock<Duration>, logger: Logger,
        _ make: @escaping @Sendable () async throws -> Relay
    ) {
        self.make = make
        self.clock = clock
        self.logger = logger
    }

    /// Serves until the shutdown; returns whether the relay owned its store at that time.
    ///
    /// - Throws: The error of `make`; for a relay that is to stand by again, the error of the
    ///   last attempt. Also the error that ends a serving relay.
    package func run() async throws -> Bool {
        var attempts = 1
        while let relay = try await opened(attempts: attempts) {
            try await serve(relay)
            guard relay.isHandedOver, !isEnding else { return true }
            logger.notice("starting again as a standby for the store")
            attempts = Self.attempts
        }
        return false
    }

    /// Begins a graceful shutdown.
    package func end() async {
        isEnding = true
        opening?.cancel()
        await serving?.triggerGracefulShutdown()
    }

    /// Reads the files of the certificate again.
    package func renewCertificates() { relay?.renewCertificates() }

    /// Returns the open relay; `nil` if the stage was ended before the relay was open.
    private func opened(attempts: Int) async throws -> Relay? {
        for _ in 1..<attempts {
            do {
                return try await openedOnce()
            } catch {
                logger.warning(
                    "cannot stand by again; trying again", metadata: ["reason": "\(error)"])
                try await clock.sleep(for: Self.pause)
            }
        }
        return try await openedOnce()
    }

    private func openedOnce() async throws -> Relay? {
        guard !isEnding else { return nil }
        let opening = Task { [make] in try await make() }
        self.opening = opening
        // The finished task would keep the relay alive.
        defer { self.opening = nil }
        do {
            // A task that is cancelled without `end()` would otherwise wait for the store forever.
            return try await withTaskCancellationHandler {
                try await opening.value
            } onCancel: {
                opening.cancel()
            }
        } catch is CancellationError where isEnding {
            return nil
        }
    }

    private func serve(_ relay: Relay) async throws {
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [
                    // A relay that hands its store over ends by itself.
                    .init(
                        service: relay, successTerminationBehavior: .gracefullyShutdownGroup)
                ],
                logger: Logger(
                    label: "belfry.signals", factory: { _ in SwiftLogNoOpLogHandler() })))
        (self.relay, serving) = (relay, group)
        defer { (self.relay, serving) = (nil, nil) }
        if isEnding { await group.triggerGracefulShutdown() }
        try await group.run()
    }
}
