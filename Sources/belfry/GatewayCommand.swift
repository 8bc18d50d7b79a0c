import ArgumentParser
import FoundationEssentials
import GatewaySimulator
import Glibc
import Logging
import NIOCore
import RelayServer
import UnixSignals

/// Runs the simulated push gateway on its own until it is stopped.
struct GatewayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gateway",
        abstract: "Run a local push gateway that behaves as APNs does.",
        discussion: """
            The gateway speaks HTTP/2 over TLS on 127.0.0.1 with certificates of its own; make the \
            sender trust the file that --ca-file names. It checks what APNs checks, and refuses in \
            APNs' words. With --script it also refuses, stalls and breaks connections as the file \
            says (docs/gateway-simulator.md).
            """)

    @Option(help: "The port to listen on; 0 takes a free one.")
    var port = 2197

    @Option(help: "The address to listen on.")
    var host = "127.0.0.1"

    @Option(help: "The file to write the certificate authority to, as PEM.", completion: .file())
    var caFile = "gateway-ca.pem"

    @Option(help: "A folder to keep the certificates in; without it, they are new at each start.")
    var certificates: String?

    @Option(
        name: .customLong("key"),
        help: ArgumentHelp(
            """
            A key whose provider tokens the gateway accepts: key ID, team ID, and the PEM file of \
            the key. Without any, it does not verify signatures.
            """, valueName: "kid:team:file"), transform: GatewayKeyOption.init(reading:))
    var keys: [GatewayKeyOption] = []

    @Option(
        help: "The gateway environment to simulate: development or production.",
        transform: Self.environment(named:))
    var environment = SimulatedEnvironment.production

    @Option(help: "The JSON file with scripted answers and devices.")
    var script: String?

    @Flag(
        name: .customLong("print"), inversion: .prefixedNo, help: "Print each push in full.")
    var printsPushes = true

    func validate() throws {
        guard (0...65_535).contains(port) else {
            throw ValidationError("--port must be from 0 to 65535")
        }
    }

    func run() async throws {
        try await CommandFailure.told { try await serve() }
    }

    private func serve() async throws {
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let gateway = try await start()
        ConsoleOutput.write(
            """
            The gateway listens on https://\(host):\(gateway.port)
            Its certificate authority is \(caFile)

            """)
        for await _ in signals { break }
        await gateway.stop()
        let totals = gateway.totals
        ConsoleOutput.write(
            "Received \(totals.received), accepted \(totals.accepted), "
                + "answered \(totals.answered), duplicates \(totals.duplicates)\n")
    }

    /// Starts the gateway.
    ///
    /// An unusable address is reported in the words of `serve`.
    private func start() async throws -> SimulatedGateway {
        let configuration = try configuration()
        do {
            return try await SimulatedGateway.start(configuration)
        } catch let error as IOError {
            let reason = unsafe String(cString: strerror(error.errnoCode))
            throw CommandFailure(.unavailable, "\(host):\(port) cannot be served: \(reason)")
        } catch let error as SocketAddressError.UnknownHost {
            let reason = AddressError.reason(ofUnknown: error.host)
            throw CommandFailure(.unavailable, "\(host):\(port) cannot be served: \(reason)")
        } catch let error as CocoaError {
            throw OutputFile.failure(error, error.filePath ?? certificates ?? caFile)
        }
    }

    private static func environment(named name: String) throws -> SimulatedEnvironment {
        guard let environment = SimulatedEnvironment(rawValue: name) else {
            throw ValidationError("--environment must be 'development' or 'production'.")
        }
        return environment
    }

    /// Parses a script.
    ///
    /// An error contains the name of the file.
    private static func scriptFile(_ path: String) throws -> ScriptFile {
        let bytes = try InputFile(path).bytes()
        do {
            return try ScriptFile(json: Data(bytes))
        } catch {
            throw ValidationError("--script \(path): \(error)")
        }
    }

    private func configuration() throws -> SimulatedGateway.Configuration {
        var configuration = SimulatedGateway.Configuration()
        configuration.host = host
        configuration.port = port
        configuration.caFile = caFile
        configuration.environment = environment
        configuration.logger = Logger(label: "belfry.gateway")
        if let certificates { configuration.certificates = .kept(folder: certificates) }
        if !keys.isEmpty { configuration.trust = .keys(keys.map(\.key)) }
        if let script {
            let file = try Self.scriptFile(script)
            configuration.script = file.script
            configuration.devices = file.devices
        }
        if printsPushes {
            configuration.onPush = { push in
                ConsoleOutput.write(SimulatedGateway.describe(push) + "\n\n")
            }
        }
        return configuration
    }
}

/// The value of `--key`.
struct GatewayKeyOption: Sendable {
    /// The key.
    let key: SigningKey

    /// Parses the key ID, the team ID and the key's file.
    init(reading argument: String) throws {
        let parts = argument.split(separator: ":", maxSplits: 2).map(String.init)
        guard parts.count == 3 else {
            throw ValidationError("a key ID, a team ID and a file are expected, as KID:TEAM:FILE")
        }
        let pem = try InputFile(parts[2]).text()
        do {
            key = try SigningKey(keyID: parts[0], teamID: parts[1], pem: pem)
        } catch {
            throw ValidationError(
                "the file \(parts[2]) contains no P-256 key in PEM form, as Apple's .p8 does")
        }
    }
}

/// Standard output without a buffer, so that the reader of a pipe sees each line at once.
enum ConsoleOutput {
    /// Writes `text`.
    static func write(_ text: String) {
        try? StandardStreams.write(Array(text.utf8), .output)
    }
}
