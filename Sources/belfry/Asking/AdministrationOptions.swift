import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer

/// Where an administrative command works, and how it shows what it found.
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
                "--url asks a running relay, and --database works without one: give one of both")
        }
    }

    /// Makes calls and prints what the closure returns of them; ends the process with the exit code
    /// of a failure.
    func run(
        _ body: (AdministrationClient) async throws -> CommandOutput
    ) async throws {
        try await CommandFailure.told {
            print(try await withClient(body).text(asJSON: json))
        }
    }

    /// Makes calls.
    func withClient<Result>(
        _ body: (AdministrationClient) async throws -> Result
    ) async throws -> Result {
        let (transport, usualContainer) = try await reach()
        // A store that is opened here is the shard itself.
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

    /// Makes one call, and shows what it answers; `parts` are those of its path.
    func make(
        _ call: AdministrationCall, _ parts: [String: String] = [:],
        query: [(String, String?)] = [], body: JSONValue? = nil
    ) async throws {
        guard shard == nil || database != nil || call.takesShard else {
            throw ValidationError("--shard: this is asked where the container lies, in any case")
        }
        try await run { client in
            CommandOutput(
                try await client.make(call, parts, query: query, body: body), to: call)
        }
    }

    private static func say(_ text: String) {
        try? StandardStreams.write(Array("\(text)\n".utf8), .error)
    }

    /// What carries calls, and the container that they are about where none is named.
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
                        ? "; or start belfry dev, which commands of the same user find" : ""))
        }
        guard token.isHeaderValue else {
            throw CommandFailure(
                .configuration, "the administrative token has a line break: give it without")
        }
        return HTTPTransport(
            url: place.hasSuffix("/") ? String(place.dropLast()) : place, token: token,
            trust: trust)
    }

    /// Refuses what no call could be sent to.
    private static func check(_ url: String) throws {
        if URL(string: url)?.isCallable == true { return }
        throw CommandFailure(
            .configuration,
            "--url: \"\(url)\" is not a URL that begins with http:// or https://"
                + (URL(string: url)?.port.map { $0 > 65_535 } == true
                    ? ", with a port up to 65535" : "")
                + url.meantURL)
    }

    /// A `belfry dev` of the same user, where nothing says which relay is meant.
    private func sandbox(_ configuration: RelayConfiguration) -> DevAddress? {
        guard database == nil, url == nil, config == nil, adminToken == nil,
            configuration.adminToken == nil
        else { return nil }
        return DevAddress.find(ProcessInfo.processInfo.environment)
    }

    /// The store of the relay that the configuration is of; `nil` where another relay is named.
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

/// The container that a command makes.
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

/// The container that a command is about, which need not be named beside a `belfry dev`.
struct UsualContainerOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: "The container, for example iCloud.com.example.Art (default: that of belfry dev).")
    var container: String?

    @Option(
        name: .shortAndLong, help: "development or production.",
        completion: .list(["development", "production"]))
    var environment = "development"

    /// The parts of the path of a call about the container, as far as they are named: the client
    /// knows the usual one.
    var parts: [String: String] {
        var named = ["environment": environment]
        named["container"] = container
        return named
    }

    /// The same, and more.
    func parts(_ more: [String: String]) -> [String: String] {
        parts.merging(more) { _, own in own }
    }
}

/// Makes calls, and turns refusals into failures.
struct AdministrationClient: Sendable {
    let transport: any AdministrationTransport
    /// The shard whose store is asked where a call says nothing of a container; `nil` for that of
    /// the relay asked.
    let shard: String?
    /// The container that a call is about where none is named: that of a `belfry dev`.
    let usualContainer: String?

    /// The container that a command is about.
    ///
    /// - Throws: ``CommandFailure`` if none is named, and none is usual.
    func name(of container: String?) throws -> String {
        guard let name = container ?? usualContainer else {
            throw CommandFailure(
                .configuration, "no container: give --container, or start belfry dev")
        }
        return name
    }

    /// Makes a call that must succeed.
    ///
    /// - Returns: The answer.
    /// - Throws: ``CommandFailure`` with the relay's reason.
    func make(
        _ call: AdministrationCall, _ parts: [String: String] = [:],
        query: [(String, String?)] = [], body: JSONValue? = nil
    ) async throws -> JSONValue {
        let named = call.takesShard ? [("shard", shard)] : []
        let target = call.target(try completed(parts, of: call), query: query + named)
        return try Self.success(try await transport.call(call.method, target, body: body))
    }

    /// Makes a call whose body is a file, and that must succeed.
    ///
    /// - Returns: The answer.
    /// - Throws: ``CommandFailure`` with the relay's reason.
    func upload(
        _ call: AdministrationCall, _ parts: [String: String] = [:], _ file: UploadedFile
    ) async throws -> JSONValue {
        let target = call.target(try completed(parts, of: call), query: [])
        let answer = try await transport.upload(call.method, target, file)
        do throws(CommandFailure) {
            return try Self.success(answer)
        } catch {
            throw CommandFailure(error.kind, file.placed(error.description))
        }
    }

    /// The parts of a call's path, with the container.
    ///
    /// A name that is empty, as of a variable that is not set, is refused: without it the path
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
