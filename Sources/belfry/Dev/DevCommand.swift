import ArgumentParser
import Crypto
import Fanout
import FoundationEssentials
import GatewaySimulator
import Logging
import Metrics
import NIOCore
import NIOPosix
import RelayModel
import RelayServer
import ServiceLifecycle
import Storage
import UnixSignals

/// Runs a relay in an invented environment, so that a user can see a change fire a subscription
/// within a minute.
struct DevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dev",
        abstract: "Run a relay with a local push gateway, a container, users and devices.",
        discussion: """
            The command prints curl lines to try. With --once it runs them by itself, and exits \
            with 0 only if exactly the right devices got a push.
            """)

    @Flag(help: "Run the printed commands, say what happened, and end.")
    var once = false

    @Option(help: "The port for clients; 0 takes a free one (default: 8080, or the next free one).")
    var port: Int?

    @Option(help: "The port for the operator; 0 takes a free one.")
    var adminPort = 0

    @Option(
        help: "A folder that is kept, with its keys; without it, a new one is made and removed.",
        completion: .directory)
    var folder: String?

    @Option(
        help: "A file with a schema, devices, subscriptions and changes (docs/sandbox.md).",
        completion: .file())
    var seed: String?

    @Option(
        help: ArgumentHelp("The lowest level that the relay logs: \(Self.levels)."),
        completion: .list(Logger.Level.allCases.map(\.rawValue)),
        transform: { text in
            guard let level = Logger.Level(rawValue: text) else {
                throw ValidationError(
                    "\"\(text)\" is not a log level; it must be one of \(Self.levels)")
            }
            return level
        })
    var logLevel = Logger.Level.warning

    private static let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")

    func validate() throws {
        if once, seed != nil {
            throw ValidationError("--once runs the printed commands: leave out --seed")
        }
        // The relay's own error would name its own options.
        for (option, port) in [("--port", port ?? 0), ("--admin-port", adminPort)]
        where !(0...65_535).contains(port) {
            throw ValidationError("\(option) must be from 0 to 65535")
        }
        // Probably an unset shell variable. Without this check, the current folder would be used.
        if folder?.isEmpty == true {
            throw ValidationError("--folder must not be empty")
        }
        // A folder with the name `~` would be created here.
        if let folder, folder == "~" || folder.hasPrefix("~/") {
            throw ValidationError(
                "--folder: a shell reads ~ only where a word begins: write --folder \(folder) "
                    + "without quotes or an equals sign")
        }
    }

    func run() async throws {
        do {
            // Signals are trapped first, so that ending the command during its start leaves no
            // folder with keys behind.
            let ends = await UnixSignalsSequence(trapping: Self.endings)
            let folder = try makeFolder()
            defer {
                if self.folder == nil { try? FileManager.default.removeItem(at: folder) }
            }
            try await RelayFailures.told {
                let lock = try DevFolderLock(folder)
                defer { lock.end() }
                try await run(in: folder, until: ends)
            }
        } catch let failure as DevFailure {
            try StandardStreams.write(Array("belfry dev: \(failure)\n".utf8), .error)
            throw ExitCode.failure
        }
    }

    /// The signals that end the command.
    ///
    /// Closing a terminal sends SIGHUP. A user who wants the command to outlive the terminal starts
    /// it with SIGHUP ignored (`nohup`).
    private static var endings: [UnixSignal] {
        let former = signal(SIGHUP, SIG_DFL)
        // C functions cannot be compared in Swift. SIG_IGN has the value 1.
        let isIgnored = unsafe unsafeBitCast(former, to: Int.self) == 1
        guard isIgnored else { return [.sigterm, .sigint, .sighup] }
        signal(SIGHUP, SIG_IGN)
        return [.sigterm, .sigint]
    }

    private func makeFolder() throws -> URL {
        // In a folder that all users share, a random name cannot have been taken by another user.
        let place =
            folder.map { URL(filePath: $0) }
            ?? FileManager.default.temporaryDirectory
            .appending(path: "belfry-dev-\(Hexadecimal.encode(World.real.randomBytes(8)))")
        do {
            try FileManager.default.createDirectory(
                at: place, withIntermediateDirectories: folder != nil,
                attributes: [.posixPermissions: 0o700])
        } catch {
            let hint = folder == nil ? "; TMPDIR names where, and --folder another place" : ""
            throw DevFailure(
                "the folder \(place.path) cannot be made: \(error.systemReason)\(hint)")
        }
        return place
    }

    private func run(in folder: URL, until ends: UnixSignalsSequence) async throws {
        let world = World.real
        // Errors in the seed are reported before anything is started.
        let seed = try seed.map { try DevSeed(file: $0) }
        let sandbox = try DevSandbox(
            folder: folder, seeded: seed?.devices ?? [], world: world)
        let phones = SandboxPushes(clock: world.clock) { world.randomBytes($0) }
        // Furnishing comes first: it fails if another relay has the folder, before the gateway
        // replaces the certificate that this relay trusts.
        try await sandbox.furnish(at: world.now())
        let gateway = try await startGateway(of: sandbox, phones, world)
        let metrics = PrometheusMetrics()
        MetricsSystem.bootstrap(metrics)
        BuildStamp.current.record()
        let logger = Logger(label: "belfry") { ProcessLog.own.handler(label: $0) }
        ProcessLog.own.levels.configure(logLevel)
        let chronicle = DevChronicle()
        let relay = try await Relay(
            try await relayConfiguration(of: sandbox, gatewayPort: gateway.port), world: world,
            metrics: metrics, logger: logger, levels: ProcessLog.own.levels,
            watch: chronicle.watch, phones: phones)
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [.init(service: relay)],
                logger: Logger(label: "belfry.signals") { _ in SwiftLogNoOpLogHandler() }))
        let end = EndMark()
        let ending = Task {
            for await _ in ends {
                end.set()
                await group.triggerGracefulShutdown()
            }
        }
        defer { ending.cancel() }
        do {
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { await chronicle.tell(of: relay) }
                defer { tasks.cancelAll() }
                try await drive(relay, sandbox, gateway, group, seed, end, until: world.now())
            }
        } catch {
            await gateway.stop()
            throw error
        }
        await gateway.stop()
    }

    private static let untried = DevFailure("it was ended before it had run the commands")

    /// What has ended.
    private enum Ending {
        case relay
        /// The task that shows or sows at the start, or tries the commands once.
        case tour((any Error)?)
    }

    private func drive(
        _ relay: Relay, _ sandbox: DevSandbox, _ gateway: SimulatedGateway, _ group: ServiceGroup,
        _ seed: DevSeed?, _ end: EndMark, until now: Timestamp
    ) async throws {
        defer { DevAddress.withdraw(ProcessInfo.processInfo.environment) }
        try await withThrowingTaskGroup(of: Ending.self) { tasks in
            tasks.addTask {
                try await group.run()
                return .relay
            }
            tasks.addTask {
                var failure: (any Error)?
                do {
                    try await show(relay, sandbox, gateway, seed, until: now)
                } catch is CancellationError {
                    // The relay was ended in the meantime, on request.
                    failure = once ? Self.untried : nil
                } catch {
                    // If the command was being ended, that is the only reason for the failure.
                    failure = once && end.isSet ? Self.untried : error
                }
                // The relay ends as on request. If its servers were cut off, their errors would
                // appear before the actual failure.
                if once || failure != nil { await group.triggerGracefulShutdown() }
                return .tour(failure)
            }
            var failure: (any Error)?
            do {
                while let ending = try await tasks.next() {
                    switch ending {
                    // Calls that are still being sown or tried would get no answer.
                    case .relay: tasks.cancelAll()
                    case .tour(let found): failure = failure ?? found
                    }
                }
            } catch {
                // If the relay cannot be served, that error is reported, and the wait for its ports
                // ends.
                await group.triggerGracefulShutdown()
                throw failure ?? error
            }
            if let failure { throw failure }
        }
    }

    /// Once the relay is served, shows what to try, or tries it.
    private func show(
        _ relay: Relay, _ sandbox: DevSandbox, _ gateway: SimulatedGateway, _ seed: DevSeed?,
        until now: Timestamp
    ) async throws {
        let port = try await relay.ports.port(of: "http")
        let adminPort = try await relay.ports.port(of: relay.administrativeListener)
        let environment = ProcessInfo.processInfo.environment
        let address = DevAddress(
            url: "http://127.0.0.1:\(adminPort)", adminToken: sandbox.secrets.adminToken,
            process: ProcessInfo.processInfo.processIdentifier, container: DevSandbox.container,
            sourceURL: sandbox.sourceURL(port: port), sourceToken: sandbox.secrets.sourceToken,
            store: sandbox.wholeStorePath)
        let tour = DevTour(
            sandbox: sandbox, port: port, adminPort: adminPort, consolePath: relay.consolePath,
            isFound: !once && address.announce(environment),
            userToken: sandbox.userToken("alice", until: now.advanced(by: .seconds(86_400))),
            curl: DevTour.curl(environment))
        StandardStreams.say(tour.welcome)
        if let seed {
            let sower = DevSower(
                seed: seed, sandbox: sandbox, port: port, adminPort: adminPort,
                expiry: now.advanced(by: .seconds(86_400)))
            StandardStreams.say("\n\(try await sower.sow())\n")
        }
        guard once else { return }
        try await DevRehearsal(tour: tour, sandbox: sandbox, gateway: gateway, relay: relay).run()
    }

    /// Returns the port for clients: the requested one, or the first free one from 8080 on.
    ///
    /// For 0, a free port is chosen here, because the URLs of sources must contain it.
    private func clientPort() async throws -> Int {
        if let port, port != 0 { return port }
        guard port == nil else { return await Self.bound(to: 0) ?? 0 }
        let usual = 8080
        for port in usual..<usual + 20 where await Self.bound(to: port) != nil {
            if port != usual { StandardStreams.say("Port \(usual) is taken; this is \(port).") }
            return port
        }
        return await Self.bound(to: 0) ?? 0
    }

    /// Binds a port briefly; returns its number, or `nil` if it is taken.
    private static func bound(to port: Int) async -> Int? {
        let channel = try? await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: "127.0.0.1", port: port).get()
        let bound = channel?.localAddress?.port
        try? await channel?.close()
        return bound
    }

    private func startGateway(
        of sandbox: DevSandbox, _ phones: SandboxPushes, _ world: World
    ) async throws -> SimulatedGateway {
        var configuration = SimulatedGateway.Configuration()
        configuration.caFile = sandbox.caPath
        configuration.environment = .development
        configuration.topics = [DevSandbox.topic]
        configuration.trust = .keys([
            SigningKey(
                keyID: DevSandbox.keyID, teamID: DevSandbox.teamID,
                publicKey: sandbox.signingKey.publicKey)
        ])
        configuration.onPush = { push in
            StandardStreams.say(
                "\nThe gateway got a push for \(sandbox.phone(with: push.deviceToken)):")
            StandardStreams.say(ShownText.plain(SimulatedGateway.describe(push)))
            if push.isAccepted { phones.note(SandboxPushes.Push(push, at: world.now())) }
        }
        return try await SimulatedGateway.start(configuration)
    }

    private func relayConfiguration(
        of sandbox: DevSandbox, gatewayPort: Int
    ) async throws -> RelayConfiguration {
        let values = try await ConfigurationValues.gather(
            arguments: [
                "--storage-path", sandbox.storePath,
                "--http-port", String(try await clientPort()),
                "--admin-port", String(adminPort), "--admin-token", sandbox.secrets.adminToken,
                "--apns-url", "https://127.0.0.1:\(gatewayPort)", "--apns-ca-file", sandbox.caPath,
            ], environment: [:])
        return try RelayConfiguration(values)
    }
}

extension SandboxPushes.Push {
    /// Creates a push as a phone receives it.
    init(_ push: ReceivedPush, at now: Timestamp) {
        self.init(
            at: now, token: push.deviceToken, deliveryID: push.apnsID,
            headers: Dictionary(
                push.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first }),
            payload: push.payload)
    }
}
