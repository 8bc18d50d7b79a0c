import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer

/// The options of all administrative commands: the relay or store to work on, and the output
/// format.
struct AdministrationOptions: ParsableArguments {
    @Option(
        help: "The administrative surface of a running relay (default: from the configuration).")
    var url: String?

    @Option(help: "Its token (default: BELFRY_ADMIN_TOKEN, or from the configuration).")
    var adminToken: String?

    @Option(
        help: "Work on this file or database instead, while no relay has it open.",
        completion: .file())
    var database: String?

    @Option(
        help: "The certificate authorities of its certificate, in PEM form (default: tls.caFile).",
        completion: .file())
    var caFile: String?

    @Option(help: "The configuration file.", completion: .file())
    var config: String?

    @Option(
        help: """
            The shard whose store to ask, where there are several (default: that of the relay that \
            you ask); with --database, the schema.
            """)
    var shard: String?

    @Flag(help: "Show JSON instead of tables.")
    var json = false

    func validate() throws {
        guard url == nil || database == nil else {
            throw ValidationError(
                "--url asks a running relay, and --database works without one: give one of the two")
        }
        if let database { try NamedStore.requireName(database) }
    }

    /// Runs `body` and prints the output that it returns.
    ///
    /// A failure ends the process with its exit code.
    func run(
        _ body: (AdministrationClient) async throws -> CommandOutput
    ) async throws {
        try await CommandFailure.told {
            print(try await withClient(body).text(asJSON: json))
        }
    }

    /// Runs `body` with a client, and closes the client afterwards.
    func withClient<Result>(
        _ body: (AdministrationClient) async throws -> Result
    ) async throws -> Result {
        let (transport, usualContainer) = try await reach()
        // With `--database`, the store that is opened is already the shard.
        let client = AdministrationClient(
            transport: transport, shard: database == nil ? shard : nil,
            usualContainer: usualContainer)
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(try await body(client))
        } catch {
            outcome = .failure(error)
        }
        await client.transport.close()
        return try outcome.get()
    }

    /// Makes one call and shows its answer.
    ///
    /// `parts` are the parameters of its path.
    func make(
        _ call: AdministrationCall, _ parts: [String: String] = [:],
        query: [(String, String?)] = [], body: JSONValue? = nil
    ) async throws {
        if database == nil { try AdministrationClient.check(shard, of: call) }
        try await run { client in
            CommandOutput(
                try await client.make(call, parts, query: query, body: body), to: call)
        }
    }

    private static func say(_ text: String) {
        try? StandardStreams.write(Array("\(text)\n".utf8), .error)
    }

    /// Returns the transport, and the container to use if none is named.
    private func reach() async throws -> (any AdministrationTransport, String?) {
        let configuration = try await configuration()
        guard let dev = sandbox(configuration) else { return (try transport(configuration), nil) }
        Self.say("(belfry dev at \(dev.url))")
        return (
            HTTPTransport(url: dev.url, token: dev.adminToken, trust: RelayTrust()), dev.container
        )
    }

    private func transport(
        _ configuration: RelayConfiguration
    ) throws -> any AdministrationTransport {
        if let database {
            return try FileTransport(path: database, schema: shard, configuration: configuration)
        }
        let listener = configuration.admin
        var trust = RelayTrust()
        if let file = configuration.tls?.certificate { try trust.add("tls.certificateFile", file) }
        if let file = caFile ?? configuration.caFile {
            try trust.add(caFile == nil ? "tls.caFile" : "--ca-file", file)
        }
        if let url { try Self.check(url) }
        let place =
            url
            ?? trust.place(
                of: listener.host, port: listener.port, isTLS: configuration.tls != nil)
        guard let token = adminToken ?? configuration.adminToken else {
            throw CommandFailure(
                .configuration,
                "no administrative token: give --admin-token, or set BELFRY_ADMIN_TOKEN"
                    + (url == nil && config == nil
                        ? "; or start belfry dev, which the commands of the same user find by "
                            + "themselves"
                        : ""))
        }
        guard token.isHeaderValue else {
            throw CommandFailure(
                .configuration, "the administrative token contains a line break: remove it")
        }
        return HTTPTransport(
            url: place.hasSuffix("/") ? String(place.dropLast()) : place, token: token,
            trust: trust)
    }

    /// Refuses a URL to which no call can be sent.
    private static func check(_ url: String) throws {
        if URL(string: url)?.isCallable == true { return }
        throw CommandFailure(
            .configuration,
            "--url: \"\(url)\" is not a URL that begins with http:// or https://"
                + (URL(string: url)?.port.map { $0 > 65_535 } == true
                    ? ", with a port up to 65535" : "")
                + url.meantURL)
    }

    /// Returns a running `belfry dev` of the same user, if nothing else names a relay.
    private func sandbox(_ configuration: RelayConfiguration) -> DevAddress? {
        guard database == nil, url == nil, config == nil, adminToken == nil,
            configuration.adminToken == nil
        else { return nil }
        return DevAddress.find(ProcessInfo.processInfo.environment)
    }

    /// Returns the store of the configured relay; `nil` if another relay is named.
    func configuredFile() async throws -> String? {
        guard url == nil, database == nil else { return nil }
        let configuration = try await configuration(saying: false)
        return sandbox(configuration) == nil ? configuration.storagePath : nil
    }

    private func configuration(saying: Bool = true) async throws -> RelayConfiguration {
        do {
            let values = try await ConfigurationValues.gather(
                arguments: config.map { ["--config", $0] } ?? [],
                environment: ProcessInfo.processInfo.environment)
            for remark in values.remarks where saying { Self.say("warning: \(remark)") }
            return try RelayConfiguration(values)
        } catch let error as ConfigurationError {
            throw CommandFailure(.configuration, error.description)
        }
    }
}

/// The container that a command creates.
struct ContainerOptions: ParsableArguments {
    @Option(name: .shortAndLong, help: "The container, for example iCloud.com.example.Art.")
    var container: String

    @Option(
        name: .shortAndLong, help: "development or production.",
        completion: .list(["development", "production"]))
    var environment = "development"

    /// The parts of the path of a call about the container.
    var parts: [String: String] { ["container": container, "environment": environment] }
}

/// The container of a command.
///
/// It may be omitted while a `belfry dev` runs.
struct UsualContainerOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: "The container, for example iCloud.com.example.Art (default: that of belfry dev).")
    var container: String?

    @Option(
        name: .shortAndLong, help: "development or production.",
        completion: .list(["development", "production"]))
    var environment = "development"

    /// The parts of the path of a call about the container, as far as they are given.
    ///
    /// The client adds the usual container.
    var parts: [String: String] {
        var named = ["environment": environment]
        named["container"] = container
        return named
    }

    /// Returns the same parts and `more`.
    func parts(_ more: [String: String]) -> [String: String] {
        parts.merging(more) { _, own in own }
    }
}

/// Makes calls, and turns refusals into failures.
struct AdministrationClient: Sendable {
    let transport: any AdministrationTransport
    /// The shard for calls that name no container; `nil` for that of the asked relay.
    let shard: String?
    /// The container for calls that name none: that of a running `belfry dev`.
    let usualContainer: String?

    /// Returns the container of a command.
    ///
    /// - Throws: ``CommandFailure`` if none is given and there is no usual one.
    func name(of container: String?) throws -> String {
        guard let name = container ?? usualContainer else {
            throw CommandFailure(
                .configuration, "no container: give --container, or start belfry dev")
        }
        return name
    }

    /// Refuses a shard beside a call that goes to the shard of its container: what it names would
    /// be passed over.
    static func check(_ shard: String?, of call: AdministrationCall) throws {
        guard shard == nil || call.takesShard else {
            throw ValidationError(
                "--shard is not allowed here: the call goes to the shard of the container")
        }
    }

    /// Makes a call that must succeed.
    ///
    /// - Returns: The answer.
    /// - Throws: ``CommandFailure`` with the relay's reason.
    func make(
        _ call: AdministrationCall, _ parts: [String: String] = [:],
        query: [(String, String?)] = [], body: JSONValue? = nil
    ) async throws -> JSONValue {
        try Self.check(shard, of: call)
        let named = call.takesShard ? [("shard", shard)] : []
        let target = call.target(try completed(parts, of: call), query: query + named)
        return try Self.success(try await transport.call(call.method, target, body: body))
    }

    /// Makes a call that must succeed and whose body is a file.
    ///
    /// - Returns: The answer.
    /// - Throws: ``CommandFailure`` with the relay's reason.
    func upload(
        _ call: AdministrationCall, _ parts: [String: String] = [:], _ file: UploadedFile
    ) async throws -> JSONValue {
        try Self.check(shard, of: call)
        let target = call.target(try completed(parts, of: call), query: [])
        let answer = try await transport.upload(call.method, target, file)
        do throws(CommandFailure) {
            return try Self.success(answer)
        } catch {
            throw CommandFailure(error.kind, file.placed(error.description))
        }
    }

    /// Returns the parts of a call's path, with the container.
    ///
    /// An empty part, such as the value of an unset shell variable, is refused: the path without it
    /// would be that of another call.
    private func completed(
        _ parts: [String: String], of call: AdministrationCall
    ) throws -> [String: String] {
        var parts = parts
        if call.path.contains("{container}") {
            parts["container"] = try name(of: parts["container"])
        }
        guard let empty = parts.filter({ $0.value.isEmpty }).keys.min() else { return parts }
        throw ValidationError("\(empty): must not be empty")
    }

    private static func success(
        _ answer: (status: Int, json: JSONValue)
    ) throws(CommandFailure) -> JSONValue {
        guard answer.status >= 300 else { return answer.json }
        var reason = "HTTP \(answer.status)"
        if case .object(let object) = answer.json, case .string(let text)? = object["reason"] {
            reason = text
        }
        if answer.status == 404, reason.hasPrefix("there is no call at ") {
            reason += ": is it the URL of the administrative surface (admin.port, 8081 unless set)?"
        }
        throw CommandFailure(answer.status < 500 ? .refused : .broken, reason)
    }
}
