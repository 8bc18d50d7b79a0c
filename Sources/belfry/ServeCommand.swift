import ArgumentParser
import Foundation
import Gateway
import Logging
import Metrics
import RelayServer
import ServiceLifecycle
import Storage
import UnixSignals

/// Runs the relay.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the relay.",
        discussion: """
            Settings come from flags, from variables that begin with BELFRY_, and from the file \
            that --config names, in this order; docs/configuration.md lists them. Example: \
            belfry serve --storage-path /var/lib/belfry/relay.sqlite --http-port 8080
            """)

    @Argument(parsing: .captureForPassthrough, help: "Settings, as --name value.")
    var settings: [String] = []

    func run() async throws {
        if settings.contains("--help") || settings.contains("-h") {
            print(Belfry.helpMessage(for: Self.self))
            return
        }
        let environment = ProcessInfo.processInfo.environment
        if let point = environment["BELFRY_CRASH_AT"] { CrashPoint.arm(point) }
        do {
            let values = try await ConfigurationValues.gather(
                arguments: settings, environment: environment)
            try await serve(try RelayConfiguration(values))
        } catch let error as ConfigurationError {
            throw Self.ending(.configuration, error)
        } catch let error as StorageError {
            throw Self.ending(.unavailable, error)
        } catch let error as AddressError {
            throw Self.ending(.unavailable, error)
        } catch let error as GatewaySetupError {
            throw Self.ending(.unavailable, error)
        }
    }

    /// Says what is wrong, and with which exit code the process ends.
    private static func ending(
        _ kind: CommandFailure.Kind, _ error: some Error & CustomStringConvertible
    ) -> any Error {
        do {
            try StandardStreams.write(Array("belfry: \(error)\n".utf8), .error)
        } catch {
            return error
        }
        return ExitCode(kind.rawValue)
    }

    private func serve(_ configuration: RelayConfiguration) async throws {
        let metrics = PrometheusMetrics()
        MetricsSystem.bootstrap(metrics)
        var logger = Logger(label: "belfry")
        logger.logLevel = configuration.logLevel
        for setting in configuration.description.split(separator: "\n") {
            logger.info("configuration", metadata: ["setting": "\(setting)"])
        }
        let relay = try await Relay(
            configuration, world: .real, metrics: metrics, logger: logger)
        try await ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [.init(service: relay)], gracefulShutdownSignals: [.sigterm, .sigint],
                logger: Logger(label: "belfry.signals", factory: { _ in SwiftLogNoOpLogHandler() }))
        ).run()
    }
}
