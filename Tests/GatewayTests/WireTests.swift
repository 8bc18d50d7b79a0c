import Crypto
import Foundation
import Gateway
import GatewaySimulator
import NIOCore
import NIOHPACK
import NIOSSL
import RelayModel
import RelayTestKit
import Testing

/// The bytes on the wire, and the connection that they take.
@Suite(.timeLimit(.minutes(30))) struct WireTests {
    /// Runs `body` with a raw server and a push gateway that sends to it.
    func run(
        trusting: String? = nil, settings change: (inout CurlGatewaySettings) -> Void = { _ in },
        credential: GatewayCredential? = .sample(P256.Signing.PrivateKey()),
        _ body: (RawServer, CurlPushGateway, EndCollector) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "belfry-wire-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try LoopbackCertificates.write(to: folder)
        let server = try await RawServer.start(certificatesIn: folder, trusting: trusting)
        var settings = CurlGatewaySettings()
        // The time is long because other suites may use all processors.
        settings.connectTimeout = .patience
        settings.production = try #require(
            GatewayEndpoint("https://127.0.0.1:\(server.port)"))
        settings.caFile = "\(folder)/ca.pem"
        settings.connectionsPerCredential = 1
        change(&settings)
        var world = GatewayWorld.sample()
        world.credentials = { _, _ in credential }
        let ends = EndCollector()
        let gateway = try CurlPushGateway(settings: settings, world: world) { ends.take($0) }
        try await body(server, gateway, ends)
        await gateway.shutDown(within: .zero)
        try await server.stop()
    }

    @Test func `the bytes of a push are those of the documented form`() async throws {
        try await run { server, gateway, ends in
            let payload = #"{"aps":{"alert":"Ünïcode"},"ck":{"ce":2}}"#
            let request = try PushRequest.sample(
                token: String(repeating: "AB", count: 32), collapseID: "art-1",
                expiration: Timestamp(seconds: 4_000_000_000), payload: payload)
            gateway.send([request])
            let ended = await ends.wait(for: [1])
            #expect(ended[1] == .accepted)
            let bytes = try #require(server.connections.first?.bytes)
            #expect(bytes.starts(with: RawFrame.preface))
            let frames = RawFrame.frames(of: bytes).filter { $0.stream != 0 && $0.kind != 3 }
            #expect(frames.map(\.kind) == [1, 0], "HEADERS and DATA, and no PRIORITY")
            let head = try #require(frames.first)
            #expect(head.flags & 0x24 == 0x04, "END_HEADERS, and no priority in it")
            #expect(frames[1].flags & 1 == 1)
            #expect(frames[1].payload == Array(payload.utf8), "not compressed, not padded")
            try checkFields(of: head, port: server.port, payload: payload)
        }
    }

    private func checkFields(of head: RawFrame, port: Int, payload: String) throws {
        var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
        var block = ByteBuffer(bytes: head.payload)
        let fields = try decoder.decodeHeaders(from: &block)
        let names = fields.map(\.name)
        #expect(names.allSatisfy { $0 == $0.lowercased() })
        #expect(Set(names).count == names.count, "no field twice")
        #expect(names.prefix(4).allSatisfy { $0.hasPrefix(":") }, "pseudo-fields come first")
        var values = Dictionary(uniqueKeysWithValues: fields.map { ($0.name, $0.value) })
        let removed = values.removeValue(forKey: "authorization")
        let proof = try #require(removed)
        try checkProof(proof)
        #expect(
            values == [
                ":method": "POST", ":scheme": "https", ":authority": "127.0.0.1:\(port)",
                ":path": "/3/device/" + String(repeating: "ab", count: 32),
                "apns-id": "01234567-89ab-4def-0000-000000000001",
                "apns-topic": "com.example.Art", "apns-push-type": "alert",
                "apns-priority": "10", "apns-collapse-id": "art-1",
                "apns-expiration": "4000000000", "content-type": "application/json",
                "content-length": "\(payload.utf8.count)",
            ])
        // APNs asks senders not to index tokens and paths; literals of the forms 0x0n and 0x1n are
        // not indexed.
        let token = fields.first { $0.name == "authorization" }
        #expect(token?.indexable != .indexable)
        #expect(fields.first { $0.name == ":path" }?.indexable != .indexable)
    }

    private func checkProof(_ proof: String) throws {
        #expect(proof.hasPrefix("bearer "))
        let parts = proof.dropFirst("bearer ".count).split(separator: ".").map(String.init)
        #expect(parts.count == 3)
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        #expect(parts.allSatisfy { $0.allSatisfy(alphabet.contains) }, "base64url, no padding")
        func json(_ part: String) throws -> JSONValue {
            let text = part.replacing("-", with: "+").replacing("_", with: "/")
            let padding = String(repeating: "=", count: (4 - text.count % 4) % 4)
            return try JSONValue(parsing: try #require(Base64.decode(text + padding)))
        }
        #expect(try json(parts[0]) == ["alg": "ES256", "kid": "KEY0000001"])
        guard case .object(let claims) = try json(parts[1]),
            case .integer(let issuedAt)? = claims["iat"]
        else {
            Issue.record("iat must be an integer: \(parts[1])")
            return
        }
        #expect(claims["iss"] == "TEAM000001")
        #expect(claims.members.count == 2)
        #expect((-60...0).contains(issuedAt - Timestamp.now.seconds))
        #expect(parts[2].count == 86, "64 bytes r and s, not DER")
    }

    @Test func `a background push is marked so and has priority 5`() async throws {
        try await run { server, gateway, ends in
            gateway.send([
                try .sample(
                    pushType: .background, expiration: Timestamp(seconds: 1),
                    payload: #"{"aps":{"content-available":1}}"#)
            ])
            _ = await ends.wait(for: [1])
            let bytes = try #require(server.connections.first?.bytes)
            let head = try #require(RawFrame.frames(of: bytes).first { $0.kind == 1 })
            var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
            var block = ByteBuffer(bytes: head.payload)
            let fields = try decoder.decodeHeaders(from: &block)
            #expect(fields["apns-push-type"] == ["background"])
            #expect(fields["apns-priority"] == ["5"])
            #expect(fields["apns-expiration"] == ["0"], "what is past is tried once")
            #expect(fields["apns-collapse-id"] == [])
        }
    }

    // MARK: Certificates

    private static let certificates: [GatewayCredential.ClientCertificate] = [
        .init(packing: .pem, bytes: Array(ClientCertificateSample.pem.utf8)),
        .init(
            packing: .pkcs12, bytes: Base64.decode(ClientCertificateSample.pkcs12) ?? [],
            passphrase: ConcealedText(ClientCertificateSample.passphrase)),
    ]

    @Test(arguments: certificates)
    func `a client certificate is used in TLS, without a token`(
        certificate: GatewayCredential.ClientCertificate
    ) async throws {
        let pem = ClientCertificateSample.pem
        try await run(trusting: pem, credential: .certificate(certificate)) {
            server, gateway, ends in
            gateway.send(try (1...20).map { try .sample(ticket: $0) })
            let ended = await ends.wait(for: Set(1...20))
            #expect(ended.values.allSatisfy { $0 == .accepted }, "\(Set(ended.values))")
            let connection = try #require(server.connections.first)
            let known = try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8))[0].toDERBytes()
            #expect(connection.clientCertificate == known)
            let head = try #require(RawFrame.frames(of: connection.bytes).first { $0.kind == 1 })
            var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
            var block = ByteBuffer(bytes: head.payload)
            #expect(try decoder.decodeHeaders(from: &block)["authorization"] == [])
        }
    }

    @Test func `an unreadable certificate is reported without its passphrase`()
        async throws
    {
        let certificate = GatewayCredential.ClientCertificate(
            packing: .pkcs12, bytes: Base64.decode(ClientCertificateSample.pkcs12) ?? [],
            passphrase: ConcealedText("open barley"))
        try await run(credential: .certificate(certificate)) { server, gateway, ends in
            gateway.send([try .sample()])
            let ended = await ends.wait(for: [1])
            guard case .notSent(let cause)? = ended[1] else {
                Issue.record("\(ended)")
                return
            }
            #expect(!cause.description.contains("barley"))
            #expect(cause.description.localizedCaseInsensitiveContains("certificate"), "\(cause)")
            #expect(server.connections.isEmpty)
        }
    }

    // MARK: The way there

    @Test func `a configured proxy is asked for a tunnel with its password`() async throws {
        let proxy = try await TunnelProxy.start()
        try await run {
            $0.proxy = ConcealedText("http://ann:secret@127.0.0.1:\(proxy.port)")
        } _: { server, gateway, ends in
            gateway.send([try .sample()])
            let ended = await ends.wait(for: [1])
            #expect(ended[1] == .accepted)
            let asked = try #require(proxy.requests.first)
            #expect(asked.hasPrefix("CONNECT 127.0.0.1:\(server.port) HTTP/1.1\r\n"))
            let password = Base64.encode(Array("ann:secret".utf8))
            #expect(asked.contains("Proxy-Authorization: Basic \(password)\r\n"))
        }
        try await proxy.stop()
    }

    @Test func `the process's proxy exceptions do not bypass a configured proxy`()
        async throws
    {
        await #expect(processExitsWith: .success) {
            for name in ["no_proxy", "NO_PROXY"] { setenv(name, "*", 1) }
            let proxy = try await TunnelProxy.start()
            try await WireTests().run {
                $0.proxy = ConcealedText("http://127.0.0.1:\(proxy.port)")
            } _: { server, gateway, ends in
                gateway.send([try .sample()])
                let ended = await ends.wait(for: [1])
                guard ended[1] == .accepted, proxy.requests.count == 1 else { exit(1) }
            }
        }
    }

    @Test func `the process's proxy variables are not used`() async throws {
        await #expect(processExitsWith: .success) {
            for name in ["https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
                setenv(name, "http://127.0.0.1:9", 1)
            }
            try await WireTests().run { server, gateway, ends in
                gateway.send([try .sample()])
                let ended = await ends.wait(for: [1])
                guard ended[1] == .accepted else { exit(1) }
            }
        }
    }

    @Test func `the settings do not show a proxy's password`() {
        var settings = CurlGatewaySettings()
        settings.proxy = ConcealedText("http://ann:secret@proxy.example:3128")
        #expect(!"\(settings)".contains("secret"))
        #expect(!String(reflecting: settings).contains("secret"))
    }

    @Test func `a name with several addresses is reached at one that answers`() async throws {
        // `localhost` is ::1 and 127.0.0.1, and the server listens only on the second.
        var port = 0
        try await run {
            port = Int($0.production.url.split(separator: ":").last ?? "") ?? 0
            $0.production = GatewayEndpoint("https://localhost:\(port)") ?? $0.production
        } _: { server, gateway, ends in
            gateway.send([try .sample()])
            let ended = await ends.wait(for: [1])
            #expect(ended[1] == .accepted)
        }
    }

    @Test(arguments: ["https://127.0.0.2", "https://gateway.invalid"])
    func `a gateway of another name, and one without an address, get nothing`(
        url: String
    )
        async throws
    {
        try await run {
            let port = $0.production.url.split(separator: ":").last ?? ""
            let isAddress = url.contains("127")
            $0.production =
                GatewayEndpoint(isAddress ? "\(url):\(port)" : url) ?? $0.production
        } _: { server, gateway, ends in
            gateway.send([try .sample()])
            let ended = await ends.wait(for: [1])
            guard case .notSent? = ended[1] else {
                Issue.record("\(ended)")
                return
            }
            #expect(server.connections.allSatisfy { $0.bytes.isEmpty })
        }
    }
}
