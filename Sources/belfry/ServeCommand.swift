import ArgumentParser
import FoundationEssentials
import Logging
import Metrics
import RelayServer
import Storage
import UnixSignals

/// Runs the relay.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the relay.",
        discussion: """
            Settings come from flags, from variables that begin with BELFRY_, and from the file \
            that --config names; the first of these that gives a setting counts. At SIGHUP the \
            relay reads the certificate's files again. At SIGUSR1 it logs at the level debug for \
            ten minutes, at SIGUSR2 as configured. Example: belfry serve --storage-path \
            /var/lib/belfry/relay.sqlite --http-port 8080
            """)

    @Argument(
        parsing: .captureForPassthrough, help: "Settings, as --name value.",
        completion: .list(ConfigurationKeys.all.map(\.flag)))
    var settings: [String] = []

    func run() async throws {
        if settings.contains("--help") || settings.contains("-h") {
            print(BelfryCommand.helpMessage(for: Self.self) + "\n" + SettingsHelp.text)
            return
        }
        let environment = ProcessInfo.processInfo.environment
        try await RelayFailures.told {
            if let point = environment["BELFRY_CRASH_AT"] {
                do { try CrashPoint.arm(point) } catch { throw ConfigurationError(["\(error)"]) }
            }
            let values = try await ConfigurationValues.gather(
                arguments: settings, environment: environment)
            let configuration = try RelayConfiguration(values)
            try values.requireEffect()
            try await serve(configuration, values.remarks + values.idle)
        }
    }

    /// The real world, with the version of this build.
    private static var world: World {
        var world = World.real
        world.version = BuildStamp.current.version
        return world
    }

    private func serve(_ configuration: RelayConfiguration, _ remarks: [String]) async throws {
        let metrics = PrometheusMetrics()
        MetricsSystem.bootstrap(metrics)
        let log = ProcessLog.own
        log.form = configuration.logForm
        log.levels.configure(configuration.logLevel)
        let logger = Logger(label: "belfry")
        logger.info("starting", metadata: ["build": "\(BuildStamp.current)"])
        for setting in configuration.description.split(separator: "\n") {
            logger.info("configuration", metadata: ["setting": "\(setting)"])
        }
        for remark in remarks {
            logger.warning("configuration", metadata: ["problem": "\(remark)"])
        }
        let ends = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let stage = RelayStage(clock: Self.world.clock, logger: logger) {
            // What the previous relay published is no longer valid.
            metrics.forgetGauges()
            BuildStamp.current.record()
            return try await Relay(
                configuration, world: Self.world, metrics: metrics, logger: logger,
                levels: log.levels)
        }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { for await _ in ends { await stage.end() } }
            // A standby relay must not be terminated by a SIGHUP, which is meant to renew
            // certificates.
            tasks.addTask { await Self.heed(stage, log.levels, logger) }
            defer { tasks.cancelAll() }
            if try await !stage.run() { logger.notice("the relay ended before it had the store") }
        }
    }

    /// How long a signal keeps the log at the level debug: its sender looks at the log now.
    private static let talkative = Duration.seconds(600)

    /// Handles the signals that do not end the relay.
    private static func heed(_ stage: RelayStage, _ levels: LogLevels, _ logger: Logger) async {
        for await signal in await UnixSignalsSequence(trapping: .sighup, .sigusr1, .sigusr2) {
            switch signal {
            case .sighup: await stage.renewCertificates()
            case .sigusr1: levels.set(.debug, for: talkative)
            default: levels.set(nil)
            }
            logger.notice(
                "the relay received a signal",
                metadata: ["signal": "\(signal)", "level": "\(levels.standing().level)"])
        }
    }
}

/// The help text of all settings, from the one place where they are declared.
enum SettingsHelp {
    private static let width = 79

    static var text: String {
        let blocks = ConfigurationKeys.all.map { key -> String in
            let standard = key.isSecret ? nil : key.defaultText
            let value = standard.map { $0.isEmpty ? "none" : $0 } ?? "not set"
            return "  \(key.flag)  (\(value); \(key.variable))\n"
                + wrapped("\(key.summary) It is \(key.rule).", indent: 10)
        }
        return "SETTINGS, each with its default and its variable:\n"
            + blocks.joined(separator: "\n")
    }

    private static func wrapped(_ text: String, indent: Int) -> String {
        let margin = String(repeating: " ", count: indent)
        var lines: [String] = []
        var line = margin
        for word in text.split(separator: " ") {
            if line.count + 1 + word.count > width, line != margin {
                lines.append(line)
                line = margin
            }
            line += (line == margin ? "" : " ") + word
        }
        return (lines + [line]).joined(separator: "\n")
    }
}
