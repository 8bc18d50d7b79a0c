import ArgumentParser
import Foundation
import RelayModel
import RelayServer

/// Where an administrative command works, and how it shows what it found.
struct AdministrationOptions: ParsableArguments {
    @Option(
        help: "The administrative surface of a running relay (default: from the configuration).")
    var url: String?

    @Option(help: "Its token (default: BELFRY_ADMIN_TOKEN, or from the configuration).")
    var adminToken: String?

    @Option(help: "Work on this file instead, while no relay has it open.")
    var database: String?

    @Option(help: "The authorities of its certificate in PEM form (default: tls.caFile).")
    var caFile: String?

    @Option(help: "The configuration file.")
    var config: String?

    @Flag(help: "Show JSON instead of tables.")
    var json = false

    /// Makes calls and prints what the closure returns of them; ends the process with the exit code
    /// of a failure.
    func run(
        _ body: (AdministrationClient) async throws -> CommandOutput
    ) async throws {
        do {
            let client = AdministrationClient(transport: try await transport())
            let result: Result<CommandOutput, any Error>
            do {
                result = .success(try await body(client))
            } catch {
                result = .failure(error)
            }
            await client.transport.close()
            print(try result.get().text(asJSON: json))
        } catch let failure as CommandFailure {
            Self.complain(failure.description)
            throw ExitCode(failure.kind.rawValue)
        }
    }

    /// Shows the elements of a list, which is the member `name` of what is at `path`.
    func list(
        _ name: String, at path: String, _ columns: [CommandOutput.Column]
    ) async throws {
        try await run { client in
            CommandOutput(try await client.call("GET", path), .table(of: name, columns))
        }
    }

    /// Makes one call, and shows the members of its answer.
    func call(_ method: String, _ path: String, body: JSONValue? = nil) async throws {
        try await run { client in
            CommandOutput(try await client.call(method, path, body: body), .members)
        }
    }

    private static func complain(_ text: String) {
        say("error: \(text)")
    }

    private static func say(_ text: String) {
        try? StandardStreams.write(Array("\(text)\n".utf8), .error)
    }

    private func transport() async throws -> any AdministrationTransport {
        let configuration = try await configuration()
        if let dev = sandbox(configuration) {
            Self.say("(belfry dev at \(dev.url))")
            return HTTPTransport(url: dev.url, token: dev.adminToken, trust: RelayTrust())
        }
        if let database { return try FileTransport(path: database, configuration: configuration) }
        let listener = configuration.admin
        var trust = RelayTrust()
        if let file = configuration.tls?.certificate { try trust.add("tls.certificateFile", file) }
        if let file = caFile ?? configuration.caFile { try trust.add("tls.caFile", file) }
        let place =
            url
            ?? trust.place(
                of: listener.host, port: listener.port, isTLS: configuration.tls != nil)
        guard let token = adminToken ?? configuration.adminToken else {
            throw CommandFailure(
                .configuration,
                "no administrative token: give --admin-token, or set BELFRY_ADMIN_TOKEN")
        }
        return HTTPTransport(
            url: place.hasSuffix("/") ? String(place.dropLast()) : place, token: token,
            trust: trust)
    }

    /// A `belfry dev` of the same user, where nothing says which relay is meant.
    private func sandbox(_ configuration: RelayConfiguration) -> DevAddress? {
        guard database == nil, url == nil, config == nil, adminToken == nil,
            configuration.adminToken == nil
        else { return nil }
        return DevAddress.find(ProcessInfo.processInfo.environment)
    }

    private func configuration() async throws -> RelayConfiguration {
        do {
            return try RelayConfiguration(
                try await ConfigurationValues.gather(
                    arguments: config.map { ["--config", $0] } ?? [],
                    environment: ProcessInfo.processInfo.environment))
        } catch let error as ConfigurationError {
            throw CommandFailure(.configuration, error.description)
        }
    }
}

/// The container that a command is about.
struct ContainerOptions: ParsableArguments {
    @Option(name: .shortAndLong, help: "The container, for example iCloud.com.example.Art.")
    var container: String

    @Option(name: .shortAndLong, help: "development or production.")
    var environment = "development"

    /// The path of everything of the container.
    var path: String {
        "/admin/1/containers/\(Self.escaped(container))/\(Self.escaped(environment))"
    }

    /// A text as one segment of a path.
    static func escaped(_ text: String) -> String {
        let plain = Array("-._~".utf8)
        return text.utf8.map { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: String(Unicode.Scalar(byte))
            case _ where plain.contains(byte): String(Unicode.Scalar(byte))
            default: "%" + Hexadecimal.encode([byte])
            }
        }.joined()
    }

    /// Parameters of a call; those without a value are left out.
    static func query(_ parameters: [(String, String?)]) -> String {
        let parts = parameters.compactMap { name, value in
            value.map { "\(name)=\(escaped($0))" }
        }
        return parts.isEmpty ? "" : "?" + parts.joined(separator: "&")
    }
}

/// Makes calls, and turns refusals into failures.
struct AdministrationClient: Sendable {
    let transport: any AdministrationTransport

    /// Makes a call that must succeed.
    ///
    /// - Returns: The answer.
    /// - Throws: ``CommandFailure`` with the relay's reason.
    func call(_ method: String, _ path: String, body: JSONValue? = nil) async throws -> JSONValue {
        let answer = try await transport.call(method, path, body: body)
        guard answer.status >= 300 else { return answer.json }
        var reason = "HTTP \(answer.status)"
        if case .object(let object) = answer.json, case .string(let text)? = object["reason"] {
            reason = text
        }
        throw CommandFailure(answer.status < 500 ? .refused : .broken, reason)
    }
}
