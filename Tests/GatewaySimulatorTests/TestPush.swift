import Crypto
import Foundation
import GatewaySimulator
import NIOCore
import NIOHPACK
import NIOHTTP2

/// A push as a test sends it, which is valid unless the test changes it.
struct TestPush: Sendable {
    static let token = String(repeating: "ab", count: 32)
    /// A provider token, made once.
    ///
    /// Each signature differs, and a gateway verifies each token that it has not seen.
    static let authorization = "bearer " + TestKey.team.token()

    var method = "POST"
    var path = "/3/device/" + token
    var headers: [(name: String, value: String)] = [
        ("authorization", authorization),
        ("apns-topic", "com.example.Art"),
        ("apns-push-type", "alert"),
    ]
    var body = #"{"aps":{"alert":"Hi"}}"#

    /// Returns a push to `token` whose identifier is made from `number`.
    static func numbered(_ number: Int, token: String = token) -> TestPush {
        var push = TestPush()
        push.path = "/3/device/" + token
        push.headers.append(("apns-id", apnsID(number)))
        return push
    }

    static func apnsID(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return "00000000-0000-4000-8000-"
            + String(repeating: "0", count: 12 - digits.count) + digits
    }

    /// Returns the push with other values of some headers; `nil` removes a header.
    func with(_ changes: [String: String?]) -> TestPush {
        var push = self
        for (name, value) in changes.sorted(by: { $0.key < $1.key }) {
            push.headers.removeAll { $0.name == name }
            if let value { push.headers.append((name, value)) }
        }
        return push
    }

    var frames: [HTTP2Frame.FramePayload] {
        var fields = HPACKHeaders([
            (":method", method), (":scheme", "https"), (":path", path),
            (":authority", "localhost"),
        ])
        for (name, value) in headers { fields.add(name: name, value: value) }
        guard !body.isEmpty else {
            return [.headers(.init(headers: fields, endStream: true))]
        }
        return [
            .headers(.init(headers: fields, endStream: false)),
            .data(.init(data: .byteBuffer(ByteBuffer(string: body)), endStream: true)),
        ]
    }
}

/// A provider's key, which signs provider tokens.
struct TestKey: Sendable {
    /// The moment that tests use as the present, in seconds since 1970.
    static let now = 1_800_000_000
    static let team = TestKey(keyID: "KEY1234567", teamID: "TEAM123456")

    var keyID: String
    var teamID: String
    var privateKey = P256.Signing.PrivateKey()

    var signingKey: SigningKey {
        SigningKey(keyID: keyID, teamID: teamID, publicKey: privateKey.publicKey)
    }

    /// Returns a provider token; a test may replace the JSON of the header and the claims.
    func token(age: Int = 10, header: String? = nil, claims: String? = nil) -> String {
        let header = header ?? #"{"alg":"ES256","kid":"\#(keyID)"}"#
        let claims = claims ?? #"{"iss":"\#(teamID)","iat":\#(Self.now - age)}"#
        let text = Self.base64URL(Data(header.utf8)) + "." + Self.base64URL(Data(claims.utf8))
        let signature = try? privateKey.signature(for: Data(text.utf8)).rawRepresentation
        return text + "." + Self.base64URL(signature ?? Data())
    }

    static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: "")
    }
}

extension SimulatedGateway {
    /// Runs `body` with a gateway that trusts ``TestKey/team``, and whose clock stands still.
    static func run(
        _ change: (inout Configuration) -> Void = { _ in },
        _ body: (SimulatedGateway) async throws -> Void
    ) async throws {
        var configuration = Configuration()
        configuration.trust = .keys([TestKey.team.signingKey])
        configuration.now = { Date(timeIntervalSince1970: TimeInterval(TestKey.now)) }
        change(&configuration)
        let gateway = try await start(configuration)
        do {
            try await body(gateway)
        } catch {
            await gateway.stop()
            throw error
        }
        await gateway.stop()
    }
}
