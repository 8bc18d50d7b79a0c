import ArgumentParser
import Foundation
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
            print(BelfryCommand.helpMessage(for: Self.self))
            return
        }
        let environment = ProcessInfo.processInfo.environment
        if let point = environment["BELFRY_CRASH_AT"] { CrashPoint.arm(point) }
        try await RelayFailures.told {
            let values = try await ConfigurationValues.gather(
                arguments: settings, environment: environment)
            try await serve(try RelayConfiguration(values), values.remarks)
        }
    }

    private func serve(_ configuration: RelayConfiguration, _ remarks: [String]) async throws {
        let metrics = PrometheusMetrics()
        MetricsSystem.bootstrap(metrics)
        var logger = Logger(label: "belfry")
        logger.logLevel = configuration.logLevel
        for setting in configuration.description.split(separator: "\n") {
            logger.info("configuration", metadata: ["setting": "\(setting)"])
        }
        for remark in remarks {
            logger.warning("configuration", metadata: ["problem": "\(remark)"])
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
