import ArgumentParser
import AsyncHTTPClient
import FoundationEssentials
import Logging
import NIOCore
import NIOHTTP1
import RelayModel
import RelayServer
import Storage
import StorageSQL
import StorageSQLite

/// Carries administrative calls to a running relay, or executes them on the store of a stopped one.
protocol AdministrationTransport: Sendable {
    /// Makes one call.
    ///
    /// - Returns: The status and the JSON of the answer.
    /// - Throws: ``CommandFailure`` if there was no answer.
    func call(
        _ method: String, _ path: String, body: JSONValue?
    ) async throws -> (status: Int, json: JSONValue)

    /// Makes one call whose body is streamed from a file.
    ///
    /// - Throws: As ``call(_:_:body:)``.
    func upload(
        _ method: String, _ path: String, _ file: UploadedFile
    ) async throws -> (status: Int, json: JSONValue)

    /// Releases the transport's resources.
    func close() async
}

/// The reason why a command fails, with its exit code (from `sysexits.h`).
struct CommandFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure, whose raw value is the exit code.
    enum Kind: Int32, Sendable {
        /// The relay refused the call.
        case refused = 1
        /// A named file cannot be read.
        case input = 66
        /// The relay, or the file, cannot be reached.
        case unavailable = 69
        /// The relay failed.
        case broken = 70
        /// The configuration cannot be used.
        case configuration = 78

        /// Whether only one call failed, so that the next one may succeed.
        var concernsOne: Bool { self == .refused || self == .broken }
    }

    let kind: Kind
    let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// Runs `body`.
    ///
    /// A ``CommandFailure`` is printed on the standard error and ends the process with its exit
    /// code.
    static func told(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let failure as CommandFailure {
            throw failure.told
        }
    }

    /// Runs a synchronous `body` in the same way as ``told(_:)``.
    static func toldAtOnce(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch let failure as CommandFailure {
            throw failure.told
        }
    }

    /// Prints the failure, and returns the exit code as an error to throw.
    private var told: ExitCode {
        try? StandardStreams.write(Array(ShownText.plain("error: \(self)\n").utf8), .error)
        return ExitCode(kind.rawValue)
    }
}

/// Calls a running relay over HTTP.
struct HTTPTransport: AdministrationTransport {
    /// The URL of the administrative surface, without a slash at the end.
    let url: String
    /// The token of the administrative surface.
    let token: String
    /// The clients for calls and for uploads, which take longer; in each list, in the order to try.
    private let clients, patientClients: [HTTPClient]

    /// The time limits of a call and of an upload.
    private static let patience = (call: TimeAmount.seconds(60), upload: TimeAmount.hours(1))

    /// - Parameters:
    ///   - url: The URL of the administrative surface, without a slash at the end.
    ///   - token: Its token.
    ///   - trust: How to recognise the relay.
    ///   - silence: The read timeout. The deadline of a call covers only the head of its answer,
    ///     and the body may stall.
    init(url: String, token: String, trust: RelayTrust, silence: TimeAmount? = nil) {
        self.url = url
        self.token = token
        clients = Self.clients(trust, silence: silence ?? Self.patience.call)
        patientClients = Self.clients(trust, silence: silence ?? Self.patience.upload)
    }

    private static func clients(_ trust: RelayTrust, silence: TimeAmount) -> [HTTPClient] {
        trust.configurations.map { known in
            var configuration = known
            configuration.timeout.read = silence
            return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        }
    }

    func call(
        _ method: String, _ path: String, body: JSONValue?
    ) async throws -> (status: Int, json: JSONValue) {
        var request = HTTPClientRequest(url: url + path)
        request.method = .init(rawValue: method)
        request.headers.add(name: "Authorization", value: "Bearer \(token)")
        if let body { request.body = .bytes(ByteBuffer(bytes: body.utf8)) }
        return try await answer(to: request, by: clients, within: Self.patience.call)
    }

    func upload(
        _ method: String, _ path: String, _ file: UploadedFile
    ) async throws -> (status: Int, json: JSONValue) {
        var request = HTTPClientRequest(url: url + path)
        request.method = .init(rawValue: method)
        request.headers.add(name: "Authorization", value: "Bearer \(token)")
        request.headers.add(name: "Content-Type", value: "application/x-ndjson")
        request.body = .stream(file, length: .unknown)
        return try await answer(to: request, by: patientClients, within: Self.patience.upload)
    }

    private func answer(
        to request: HTTPClientRequest, by clients: [HTTPClient], within time: TimeAmount
    ) async throws -> (status: Int, json: JSONValue) {
        do {
            let response = try await Self.execute(request, by: clients, within: time)
            if let place = response.redirection {
                throw CommandFailure(
                    .unavailable,
                    "\(url) redirects to \(place): give the URL of the relay itself with "
                        + "--url")
            }
            let answer = try await response.body.collect(upTo: 64 * 1024 * 1024)
            let text = Array(answer.readableBytesView)
            guard let json = try? JSONValue(stored: text) else {
                throw CommandFailure(
                    .unavailable, "\(url) is not a relay: its answer is not JSON")
            }
            return (Int(response.status.code), json)
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure(
                .unavailable,
                "no relay answers at \(url): "
                    + "\(ReachingFailure(error, knowsOwn: clients.count > 1))\n"
                    + "Start one, name another with --url, or work on its file with --database.")
        }
    }

    /// Makes the call with the first client that accepts the relay's certificate.
    private static func execute(
        _ request: HTTPClientRequest, by clients: [HTTPClient], within time: TimeAmount
    ) async throws -> HTTPClientResponse {
        for client in clients.dropLast() {
            do {
                return try await client.execute(request, timeout: time)
            } catch is OtherCertificate {}
        }
        return try await clients[clients.count - 1].execute(request, timeout: time)
    }

    func close() async {
        for client in clients + patientClients { try? await client.shutdown() }
    }
}

/// Executes calls on the store itself.
///
/// The store's lock ensures that no relay has it open.
struct FileTransport: AdministrationTransport {
    private let store: RelayStore
    private let relay: InProcessRelay

    /// Opens the store at `path`, in `schema` or else in the configured schema.
    init(path: String, schema: String?, configuration: RelayConfiguration) throws {
        if let schema, !NamedStore.isServer(path) {
            throw CommandFailure(
                .configuration,
                "--shard \(schema): \(path) is a file, which is a single store without shards")
        }
        do {
            var settings = configuration.store
            // A mistyped name must be an error, not an empty new store.
            settings.creation = .never
            let schema = schema ?? configuration.storageSchema
            store = try NamedStore(path, schema: schema).open(settings)
        } catch let error as StorageError {
            throw CommandFailure(
                .unavailable, "\(NamedStore.shown(path)) cannot be opened: \(error)")
        }
        let metrics = PrometheusMetrics()
        var dependencies = RelayDependencies(
            registry: store, log: store, progress: store, shadow: store, now: World.real.now,
            randomBytes: World.real.randomBytes,
            readiness: { .ready }, metrics: metrics, renderMetrics: { "" },
            logger: Logger(label: "belfry") { _ in SwiftLogNoOpLogHandler() },
            limits: configuration.limits, publicURL: PublicURL(configuration.publicURL),
            clock: World.real.clock)
        dependencies.secretsKeyID = store.secretsKeyID
        dependencies.backlog = { [store] in try await store.backlog() }
        relay = InProcessRelay(dependencies)
    }

    func call(
        _ method: String, _ path: String, body: JSONValue?
    ) async throws -> (status: Int, json: JSONValue) {
        let answer = try await relay.call(method, path, body: body?.utf8 ?? [])
        return (answer.status, (try? JSONValue(stored: answer.body)) ?? .null)
    }

    func upload(
        _ method: String, _ path: String, _ file: UploadedFile
    ) async throws -> (status: Int, json: JSONValue) {
        var body: [UInt8] = []
        for try await part in file { body.append(contentsOf: part.readableBytesView) }
        let answer = try await relay.call(method, path, body: body)
        return (answer.status, (try? JSONValue(stored: answer.body)) ?? .null)
    }

    func close() async {
        await store.close()
    }
}
