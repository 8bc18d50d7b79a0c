package import Logging
import ServiceLifecycle

/// How far a relay is, so that an end is taken wherever that is: while it stands by for its store,
/// which may take days, or while it serves.
///
/// A relay that has handed its store over is made anew, and stands by. What keeps it from that is
/// waited for: whoever started the process has seen it serve.
package actor RelayStage {
    private let make: @Sendable () async throws -> Relay
    private let clock: any Clock<Duration>
    private let logger: Logger
    private var opening: Task<Relay, any Error>?
    private var relay: Relay?
    private var serving: ServiceGroup?
    private var isEnding = false

    /// How long a relay that is to stand by again waits after a failure, and how often it fails
    /// before the process ends: some restarts of a database.
    private static let pause = Duration.seconds(1)
    private static let attempts = 60

    /// Begins with nothing; `make` is called for the first relay, and for each after it.
    package init(
        clock: any Clock<Duration>, logger: Logger,
        _ make: @escaping @Sendable () async throws -> Relay
    ) {
        self.make = make
        self.clock = clock
        self.logger = logger
    }

    /// Serves until the end; says whether the relay had its store then.
    ///
    /// - Throws: What `make` does, of a relay that is to stand by again the last of many times; and
    ///   what ends a relay that serves.
    package func run() async throws -> Bool {
        var attempts = 1
        while let relay = try await opened(attempts: attempts) {
            try await serve(relay)
            guard relay.isHandedOver, !isEnding else { return true }
            logger.notice("begins again, to stand by for the store")
            attempts = Self.attempts
        }
        return false
    }

    /// Ends it in order.
    package func end() async {
        isEnding = true
        opening?.cancel()
        await serving?.triggerGracefulShutdown()
    }

    /// Reads the files of the certificate again.
    package func renewCertificates() { relay?.renewCertificates() }

    /// The relay, or `nil` if it was ended before it was open.
    private func opened(attempts: Int) async throws -> Relay? {
        for _ in 1..<attempts {
            do {
                return try await openedOnce()
            } catch {
                logger.warning("cannot stand by again yet", metadata: ["reason": "\(error)"])
                try await clock.sleep(for: Self.pause)
            }
        }
        return try await openedOnce()
    }

    private func openedOnce() async throws -> Relay? {
        guard !isEnding else { return nil }
        let opening = Task { [make] in try await make() }
        self.opening = opening
        // It would hold the relay.
        defer { self.opening = nil }
        do {
            // Who is cancelled, and not told to end, would wait for the store for ever.
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
                    // One that hands its store over ends by itself.
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
