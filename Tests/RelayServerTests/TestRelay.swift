import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// A relay without a network.
///
/// It is the router over a real store in a temporary folder, with a clock that stands still and
/// random bytes that repeat.
struct TestRelay: Sendable {
    /// 2016-01-25T22:15:43Z, the date in Apple's own example.
    static let now = Timestamp(seconds: 1_453_760_143)
    static let adminToken = "admin-token-of-the-tests"
    static let apiToken = "api-token-of-the-tests"
    static let bearerKey = "bearer-key-of-the-tests"
    static let sharedSecret = "a shared secret of at least 32 bytes"
    static let container = ContainerKey(
        container: known("iCloud.com.example.Art"), environment: .development)
    static let path = "/database/1/iCloud.com.example.Art/development"

    let store: RelayStore
    let dependencies: RelayDependencies
    let client: any TestClientProtocol

    /// Settings with which queries may take as long as a busy machine needs.
    static var unhurried: QueryAdmission.Settings {
        var settings = QueryAdmission.Settings()
        settings.time = .seconds(3600)
        return settings
    }

    /// Runs `body` with a relay that has a container with all kinds of keys.
    static func with(
        readiness: @autoclosure @escaping @Sendable () -> Readiness = .ready,
        limits: RequestLimits = RequestLimits(),
        adminToken: String? = Self.adminToken,
        queries: QueryAdmission.Settings = Self.unhurried,
        surfaces: Set<RelayRoute.Surface> = Set(RelayRoute.Surface.allCases),
        adjusting adjust: (inout RelayDependencies) -> Void = { _ in },
        _ body: @escaping @Sendable (TestRelay) async throws -> Void
    ) async throws {
        let directory = FileManager.default.temporaryDirectory
            .appending(path: "belfry-server-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let store = try RelayStore.open(path: directory.appending(path: "relay.sqlite").path)
        var dependencies = dependencies(
            store, readiness: readiness, limits: limits, adminToken: adminToken)
        dependencies.queries = QueryAdmission(settings: queries, clock: ContinuousClock())
        adjust(&dependencies)
        try await prepare(store)
        try await serve(store, dependencies, surfaces, body)
    }

    /// Runs `body` with a relay on a store that is restored from the backup at `backup`.
    static func restored(
        from backup: String, _ body: @escaping @Sendable (TestRelay) async throws -> Void
    ) async throws {
        let path = backup + "-restored.sqlite"
        _ = try RelayStore.restore(from: backup, to: path)
        let store = try RelayStore.open(path: path)
        var dependencies = dependencies(
            store, readiness: { .ready }, limits: RequestLimits(), adminToken: adminToken)
        // Restoring happens some time after the backup.
        dependencies.now = { now.advanced(by: .seconds(60)) }
        try await serve(store, dependencies, Set(RelayRoute.Surface.allCases), body)
    }

    private static func serve(
        _ store: RelayStore, _ dependencies: RelayDependencies,
        _ surfaces: Set<RelayRoute.Surface>,
        _ body: @escaping @Sendable (TestRelay) async throws -> Void
    ) async throws {
        let router = RelayRouter.make(dependencies, surfaces: surfaces)
        let application = Application(router: router, logger: dependencies.logger)
        try await application.test(.router) { client in
            try await body(TestRelay(store: store, dependencies: dependencies, client: client))
        }
        await store.close()
    }

    private static func dependencies(
        _ store: RelayStore, readiness: @escaping @Sendable () -> Readiness,
        limits: RequestLimits, adminToken: String?
    ) -> RelayDependencies {
        let metrics = PrometheusMetrics()
        var dependencies = RelayDependencies(
            registry: store, log: store, progress: store, shadow: store, now: { now },
            randomBytes: { count in (0..<count).map { _ in UInt8.random(in: 0...255) } },
            readiness: { readiness() }, metrics: metrics, renderMetrics: { metrics.render() },
            logger: .silent, limits: limits,
            adminToken: adminToken, publicURL: "https://relay.example", clock: ContinuousClock())
        // Polls do not wait here; the courier's own tests cover waiting.
        var polls = CourierPolls.Settings()
        polls.hold = .milliseconds(1)
        polls.refusalDelay = .zero
        dependencies.courier = CourierPolls(
            queue: store, settings: polls, clock: ContinuousClock(), now: { now })
        dependencies.courierURL = "https://relay.example"
        return dependencies
    }

    private static func prepare(_ store: RelayStore) async throws {
        var settings = ContainerSettings(
            key: container, topics: ["com.example.Art", "com.example.Art.clip"])
        settings.userTokens = UserTokenSettings(
            sharedSecret: sharedSecret, issuer: "https://id.example", audience: "art")
        try await store.save(settings, at: now)
        for (kind, secret) in [(AccessKey.Kind.apiToken, apiToken), (.bearer, bearerKey)] {
            try await store.save(
                AccessKey(
                    id: kind.rawValue, container: container, kind: kind,
                    verifier: Secrets.verifier(of: secret), label: kind.rawValue, createdAt: now))
        }
        try await store.save(
            AccessKey(
                id: SignatureVectors.keyID, container: container, kind: .serverToServer,
                verifier: SignatureVectors.publicKey, label: "server", createdAt: now))
    }

    // MARK: Calls

    /// Returns a user token that is valid for an hour.
    static func userToken(_ user: String = "_alice") -> String {
        SignedText.hs256(
            claims: [
                "sub": .string(user), "iss": "https://id.example", "aud": "art",
                "exp": .integer(now.seconds + 3600),
            ], secret: sharedSecret)
    }

    /// Returns the query of a call by a user's client.
    static func query(_ user: String = "_alice") -> String {
        "?ckjsVersion=2.0.3&ckAPIToken=\(apiToken)&ckWebAuthToken=\(userToken(user))"
    }

    /// A response with its body.
    struct Answer {
        var status: Int
        var headers: HTTPFields
        var json: JSONValue
        var text: String

        subscript(name: String) -> JSONValue? {
            if case .object(let object) = json { object[name] } else { nil }
        }
    }

    func call(
        _ method: HTTPRequest.Method, _ target: String, headers: [String: String] = [:],
        body: String? = nil
    ) async throws -> Answer {
        var fields = HTTPFields()
        for (name, value) in headers { fields[HTTPField.Name.named(name)] = value }
        let response = try await client.executeRequest(
            uri: target, method: method, headers: fields, body: body.map { ByteBuffer(string: $0) })
        let text = String(buffer: response.body)
        return Answer(
            status: response.status.code, headers: response.headers,
            json: (try? JSONValue(parsing: text)) ?? .null, text: text)
    }

    /// Makes a call of a user's client in the public database.
    func post(
        _ path: String, _ body: String, user: String = "_alice", database: String = "public"
    ) async throws -> Answer {
        try await call(
            .post, "\(Self.path)/\(database)/\(path)\(Self.query(user))",
            headers: ["Content-Type": "text/plain"], body: body)
    }

    /// Makes a call of the administrative surface.
    func admin(
        _ method: HTTPRequest.Method, _ path: String, _ body: String? = nil
    ) async throws -> Answer {
        try await call(
            method, "/admin/1/\(path)", headers: ["Authorization": "Bearer \(Self.adminToken)"],
            body: body)
    }

    /// Creates an administrative token with these JSON members, and returns its secret.
    func makeToken(_ members: String) async throws -> String {
        let made = try await admin(.post, "tokens", #"{"label":"t",\#(members)}"#)
        #expect(made.status == 201, "\(made.text)")
        guard case .string(let secret)? = made["secret"] else { return "" }
        return secret
    }

    /// Imports a schema text into the development environment.
    func define(_ schema: String) async throws {
        let answer = try await admin(
            .put, "containers/iCloud.com.example.Art/development/schema",
            JSONValue.object(["text": .string(schema)]).text)
        #expect(answer.status == 200, "\(answer.text)")
    }
}

/// Returns the identifier for a name that must be valid.
func known<Identifier: ValidatedIdentifier>(_ name: String) -> Identifier {
    guard let identifier = Identifier(rawValue: name) else {
        preconditionFailure("\(name) is not \(Identifier.rule)")
    }
    return identifier
}

extension HTTPField.Name {
    /// Returns the header field name for a text that must be valid.
    static func named(_ name: String) -> HTTPField.Name {
        guard let field = HTTPField.Name(name) else {
            preconditionFailure("\(name) is not the name of a header field")
        }
        return field
    }
}

/// Hand-made JSON Web Tokens, which may be wrong on purpose.
enum SignedText {
    static func base64URL(_ bytes: some Sequence<UInt8>) -> String {
        Base64.encode(Array(bytes)).replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: "")
    }

    static func unsigned(header: JSONObject, claims: JSONObject) -> String {
        base64URL(JSONValue.object(header).utf8) + "." + base64URL(JSONValue.object(claims).utf8)
    }

    static func hs256(
        header: JSONObject = ["alg": "HS256", "typ": "JWT"], claims: JSONObject, secret: String
    ) -> String {
        let text = unsigned(header: header, claims: claims)
        let code = HMAC<SHA256>.authenticationCode(
            for: Data(text.utf8), using: SymmetricKey(data: Data(secret.utf8)))
        return text + "." + base64URL(code)
    }
}
