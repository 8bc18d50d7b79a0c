import Crypto
import Gateway
import GatewaySimulator
import NIOCore
import NIOHPACK
import RelayModel
import RelayTestKit
import Testing

/// The header fields of every kind of push as they are sent: exactly the documented ones.
@Suite(.timeLimit(.minutes(30))) struct PushFormTests {
    /// A kind of push, and the fields that it has in addition to the common ones.
    struct Kind: Sendable, CustomTestStringConvertible {
        var name: String
        var pushType = PushType.alert
        var priority = 10
        var collapseID: String?
        var expiration: Timestamp?
        var payload = #"{"aps":{"alert":"New"},"ck":{"ce":2}}"#
        var hasToken = true
        var fields: [String: String]

        var testDescription: String { name }
    }

    private static let alert = ["apns-push-type": "alert", "apns-priority": "10"]
    private static let background = ["apns-push-type": "background", "apns-priority": "5"]
    private static let silent = #"{"aps":{"content-available":1},"ck":{"ce":2}}"#
    private static let name64 = String(repeating: "ä", count: 32)

    static let kinds = [
        Kind(name: "alert", fields: alert),
        Kind(
            name: "alert that may wait", priority: 5,
            fields: ["apns-push-type": "alert", "apns-priority": "5"]),
        Kind(
            name: "background", pushType: .background, priority: 5, payload: silent,
            fields: background),
        Kind(
            name: "alert with an expiration",
            expiration: Timestamp(seconds: 4_000_000_000, nanoseconds: 9),
            fields: alert.merging(["apns-expiration": "4000000000"]) { $1 }),
        Kind(
            name: "background that is tried once", pushType: .background, priority: 5,
            expiration: Timestamp(seconds: 0), payload: silent,
            fields: background.merging(["apns-expiration": "0"]) { $1 }),
        Kind(
            name: "alert with a collapse ID of 64 bytes", collapseID: name64,
            fields: alert.merging(["apns-collapse-id": name64]) { $1 }),
        Kind(name: "alert by a certificate", hasToken: false, fields: alert),
        Kind(
            name: "background by a certificate", pushType: .background, priority: 5,
            payload: silent,
            hasToken: false, fields: background),
        Kind(
            name: "alert with the longest payload",
            payload: #"{"aps":{"alert":""# + String(repeating: "x", count: 4076) + #""}}"#,
            fields: alert),
    ]

    @Test(arguments: kinds)
    func `a push has the documented fields and no others`(kind: Kind) async throws {
        let pem = ClientCertificateSample.pem
        let certificate = GatewayCredential.certificate(
            .init(packing: .pem, bytes: Array(pem.utf8)))
        try await WireTests().run(
            trusting: kind.hasToken ? nil : pem,
            credential: kind.hasToken ? .sample(P256.Signing.PrivateKey()) : certificate
        ) { server, gateway, ends in
            gateway.send([
                try .sample(
                    pushType: kind.pushType, priority: kind.priority, collapseID: kind.collapseID,
                    expiration: kind.expiration, payload: kind.payload)
            ])
            #expect(await ends.wait(for: [1])[1] == .accepted)
            let bytes = try #require(server.connections.first?.bytes)
            let frames = RawFrame.frames(of: bytes).filter { $0.stream != 0 }
            #expect(frames.filter { $0.kind == 0 }.flatMap(\.payload) == Array(kind.payload.utf8))
            var values = try fields(of: frames)
            #expect((values.removeValue(forKey: "authorization") != nil) == kind.hasToken)
            let common = [
                ":method": "POST", ":scheme": "https", ":authority": "127.0.0.1:\(server.port)",
                ":path": "/3/device/" + String(repeating: "0", count: 63) + "1",
                "apns-id": "01234567-89ab-4def-0000-000000000001",
                "apns-topic": "com.example.Art", "content-type": "application/json",
                "content-length": "\(kind.payload.utf8.count)",
            ]
            #expect(values == common.merging(kind.fields) { $1 })
        }
    }

    private func fields(of frames: [RawFrame]) throws -> [String: String] {
        let head = try #require(frames.first { $0.kind == 1 })
        var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
        var block = ByteBuffer(bytes: head.payload)
        let fields = try decoder.decodeHeaders(from: &block)
        return Dictionary(fields.map { ($0.name, $0.value) }) { "\($0), \($1)" }
    }

    @Test(arguments: [443: "localhost", 2197: "localhost:2197"])
    func `the authority has a port unless it is that of HTTPS`(
        port: Int, authority: String
    ) async throws {
        let proxy = try await TunnelProxy.start()
        try await WireTests().run {
            let served = Int($0.production.url.split(separator: ":").last ?? "") ?? 0
            proxy.lead(port, to: served)
            $0.proxy = ConcealedText("http://127.0.0.1:\(proxy.port)")
            $0.production = GatewayEndpoint("https://localhost:\(port)") ?? $0.production
        } _: { server, gateway, ends in
            gateway.send([try .sample()])
            #expect(await ends.wait(for: [1])[1] == .accepted)
            let bytes = try #require(server.connections.first?.bytes)
            #expect(try fields(of: RawFrame.frames(of: bytes))[":authority"] == authority)
        }
        try await proxy.stop()
    }

    @Test func `a push that is one byte too long is not sent`() async throws {
        try await WireTests().run { server, gateway, ends in
            gateway.send([
                try .sample(
                    ticket: 1,
                    payload: #"{"aps":{"alert":""# + String(repeating: "x", count: 4077) + #""}}"#),
                try .sample(ticket: 2, collapseID: Self.name64 + "x"),
                try .sample(ticket: 3, pushType: .background, priority: 10, payload: Self.silent),
            ])
            let ended = await ends.wait(for: [1, 2, 3])
            let reasons = [UInt64](1...3).map { ticket -> String in
                if case .refused(let refusal)? = ended[ticket] { refusal.reason } else { "" }
            }
            #expect(reasons == ["PayloadTooLarge", "BadCollapseId", "BadPriority"])
            #expect(server.connections.isEmpty)
        }
    }
}
