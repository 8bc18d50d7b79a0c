import Crypto
import Foundation
import JWTKit
import RelayModel
import RelayServer
import Storage
import Testing

/// Tokens signed by an independent library, and hand-made attacks.
@Suite struct UserTokenTests {
    private static let now = TestRelay.now

    private struct Claims: JWTPayload {
        var sub: String
        var exp: Int64
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }

    private static let claims: JSONObject = [
        "sub": "_alice", "exp": .integer(now.seconds + 60), "iss": "me", "aud": ["x", "art"],
    ]

    private func check(
        _ token: String, settings: UserTokenSettings, now: Timestamp = Self.now
    ) -> Result<UserID, UserTokenRefusal> {
        do throws(UserTokenRefusal) {
            return .success(try UserTokenVerifier(settings).user(of: token, now: now))
        } catch {
            return .failure(error)
        }
    }

    private func user(_ name: String) -> Result<UserID, UserTokenRefusal> {
        .success(known(name))
    }

    // MARK: Tokens of another library

    @Test func `tokens of all four algorithms are verified with the container's keys`() async throws
    {
        let rsa = try Insecure.RSA.PrivateKey(pem: TestKeys.rsaPrivate)
        let ecdsa = ES256PrivateKey()
        let eddsa = try EdDSA.PrivateKey(curve: .ed25519)
        let keys = await JWTKeyCollection()
            .add(rsa: rsa, digestAlgorithm: .sha256, kid: "r")
            .add(ecdsa: ecdsa, kid: "e").add(eddsa: eddsa, kid: "d")
            .add(hmac: HMACKey(from: TestRelay.sharedSecret), digestAlgorithm: .sha256, kid: "h")
        let point = ecdsa.publicKey.parameters!
        let set: JSONValue = [
            "keys": [
                ["kty": "oct", "k": "c2VjcmV0", "kid": "ignored"],
                [
                    "kty": "RSA", "kid": "r", "use": "sig", "alg": "RS256", "e": "AQAB",
                    "n": .string(TestKeys.rsaModulus),
                ],
                [
                    "kty": "EC", "crv": "P-256", "kid": "e", "x": .string(point.x),
                    "y": .string(point.y),
                ],
                [
                    "kty": "OKP", "crv": "Ed25519", "kid": "d",
                    "x": .string(SignedText.base64URL(eddsa.publicKey.rawRepresentation)),
                ],
            ]
        ]
        let settings = UserTokenSettings(
            sharedSecret: TestRelay.sharedSecret, keySet: set.text)
        for kid in ["r", "e", "d", "h"] {
            let token = try await keys.sign(
                Claims(sub: "user-\(kid)", exp: Self.now.seconds + 60),
                kid: JWKIdentifier(string: kid))
            #expect(check(token, settings: settings) == user("user-\(kid)"))
            #expect(check(token + "A", settings: settings) == .failure(.signature))
        }
    }

    // MARK: Claims

    struct ClaimCase: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var change: JSONObject
        var expected: Result<String, UserTokenRefusal>
    }

    static let claimCases = [
        ClaimCase(testDescription: "as it should be", change: [:], expected: .success("_alice")),
        ClaimCase(
            testDescription: "a numeric user", change: ["sub": 42], expected: .success("42")),
        ClaimCase(
            testDescription: "an audience alone", change: ["aud": "art"],
            expected: .success("_alice")),
        ClaimCase(
            testDescription: "about to begin", change: ["nbf": .integer(now.seconds + 60)],
            expected: .success("_alice")),
        ClaimCase(
            testDescription: "ended just now", change: ["exp": .integer(now.seconds)],
            expected: .failure(.expired)),
        ClaimCase(
            testDescription: "without an end", change: ["exp": .null],
            expected: .failure(.claim("exp", "is required"))),
        ClaimCase(
            testDescription: "with an end that is no number", change: ["exp": "tomorrow"],
            expected: .failure(.claim("exp", "must be a number of seconds"))),
        ClaimCase(
            testDescription: "not begun", change: ["nbf": .integer(now.seconds + 61)],
            expected: .failure(.notYetValid)),
        ClaimCase(
            testDescription: "another issuer", change: ["iss": "you"],
            expected: .failure(.issuer)),
        ClaimCase(
            testDescription: "another audience", change: ["aud": ["music"]],
            expected: .failure(.audience)),
        ClaimCase(
            testDescription: "a user that is no name", change: ["sub": ["_alice"]],
            expected: .failure(.claim("sub", "must be a string or an integer"))),
    ]

    @Test(arguments: claimCases)
    func `each claim is checked and named in the refusal`(_ one: ClaimCase) {
        var claims = Self.claims
        for member in one.change.members { claims[member.name] = member.value }
        let settings = UserTokenSettings(
            sharedSecret: TestRelay.sharedSecret, issuer: "me", audience: "art")
        let token = SignedText.hs256(claims: claims, secret: TestRelay.sharedSecret)
        #expect(check(token, settings: settings) == one.expected.map { known($0) as UserID })
    }

    // MARK: Attacks

    @Test(arguments: ["none", "None", "NONE", "nOnE", "HS384", "", "RS256"])
    func `an algorithm that the settings lack is refused`(algorithm: String) {
        let text = SignedText.unsigned(
            header: ["alg": .string(algorithm)], claims: Self.claims)
        let settings = UserTokenSettings(sharedSecret: TestRelay.sharedSecret)
        for token in [text + ".", text + ".AAAA"] {
            #expect(
                check(token, settings: settings)
                    == .failure(.algorithm(found: algorithm, allowed: ["HS256"])))
        }
    }

    @Test func `a public key is not accepted as a shared secret`() throws {
        let settings = UserTokenSettings(keySet: TestKeys.rsaKeySet)
        for secret in [TestKeys.rsaPublic, TestKeys.rsaModulus, TestKeys.rsaKeySet] {
            let token = SignedText.hs256(claims: Self.claims, secret: secret)
            #expect(
                check(token, settings: settings)
                    == .failure(.algorithm(found: "HS256", allowed: ["RS256"])))
        }
    }

    @Test func `a key inside the token is not trusted`() {
        let header: JSONObject = [
            "alg": "HS256", "jwk": ["kty": "oct", "k": "AAAA"], "jku": "https://evil.example/",
        ]
        let token = SignedText.hs256(header: header, claims: Self.claims, secret: "\0\0\0")
        #expect(
            check(token, settings: UserTokenSettings(sharedSecret: TestRelay.sharedSecret))
                == .failure(.signature))
    }

    @Test func `a token with an unknown key or critical header is refused`() {
        var header: JSONObject = ["alg": "RS256", "kid": "other"]
        let settings = UserTokenSettings(keySet: TestKeys.rsaKeySet)
        let unknown = SignedText.unsigned(header: header, claims: Self.claims) + ".AAAA"
        #expect(check(unknown, settings: settings) == .failure(.unknownKey))
        header = ["alg": "RS256", "crit": ["exp"]]
        let critical = SignedText.unsigned(header: header, claims: Self.claims) + ".AAAA"
        #expect(check(critical, settings: settings) == .failure(.criticalHeader))
    }

    @Test(arguments: ["", ".", "..", "a.b", "a.b.c.d", "e30.e30.", "W10.e30.AAAA", "e30.e30.A"])
    func `a malformed token is refused as such`(token: String) {
        let settings = UserTokenSettings(sharedSecret: TestRelay.sharedSecret)
        guard case .failure(.malformed) = check(token, settings: settings) else {
            Issue.record("\(check(token, settings: settings))")
            return
        }
    }

    /// Returns the same token in other spellings.
    ///
    /// They use padding, the other alphabet, unused bits, white space and an empty part.
    static func respellings(of token: String) -> [String] {
        let parts = token.split(separator: ".").map(String.init)
        var spellings: [String] = []
        for index in parts.indices {
            for change in [
                { $0 + "=" }, { $0 + "==" }, { $0 + " " }, { $0 + "\n" }, { "\t" + $0 },
                { $0.replacing("-", with: "+").replacing("_", with: "/") }, Self.withStrayBits,
            ] as [(String) -> String] {
                var changed = parts
                changed[index] = change(parts[index])
                if changed != parts { spellings.append(changed.joined(separator: ".")) }
            }
        }
        return spellings + [token + ".", token + "=", " " + token]
    }

    private static func withStrayBits(_ part: String) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        guard part.utf8.count % 4 != 0, let last = part.last,
            let index = alphabet.firstIndex(of: last)
        else { return part }
        return part.dropLast() + String(alphabet[index + 1])
    }

    @Test func `a token has only one valid spelling`() {
        let settings = UserTokenSettings(sharedSecret: TestRelay.sharedSecret)
        let token = SignedText.hs256(claims: Self.claims, secret: TestRelay.sharedSecret)
        #expect(check(token, settings: settings) == user("_alice"))
        let spellings = Self.respellings(of: token)
        #expect(spellings.count > 15)
        for spelling in spellings {
            guard case .failure = check(spelling, settings: settings) else {
                Issue.record("\(spelling) is believed")
                continue
            }
        }
    }

    @Test func `repeated names in a token are refused`() {
        let settings = UserTokenSettings(sharedSecret: TestRelay.sharedSecret)
        let text =
            SignedText.base64URL(Array(#"{"alg":"HS256","alg":"none"}"#.utf8)) + "."
            + SignedText.base64URL(Array(#"{"sub":"_alice","sub":"_bob","exp":9999999999}"#.utf8))
        guard case .failure(.malformed) = check(text + ".AAAA", settings: settings) else {
            Issue.record("it was read")
            return
        }
    }

    @Test func `both forms of an ES256 signature are one token`() async throws {
        let key = P256.Signing.PrivateKey()
        let text = SignedText.unsigned(header: ["alg": "ES256"], claims: Self.claims)
        let signature = try key.signature(for: SHA256.hash(data: Array(text.utf8)))
        let der = Base64.encode(Array(signature.derRepresentation))
        let second = try P256.Signing.ECDSASignature(
            derRepresentation: Base64.decode(ServerSignatureTests.second(der)) ?? [])
        let tokens = [signature, second].map {
            "\(text).\(SignedText.base64URL($0.rawRepresentation))"
        }
        let point = Array(key.publicKey.rawRepresentation)
        let set: JSONValue = [
            "keys": [
                [
                    "kty": "EC", "crv": "P-256",
                    "x": .string(SignedText.base64URL(point.prefix(32))),
                    "y": .string(SignedText.base64URL(point.suffix(32))),
                ]
            ]
        ]
        for token in tokens {
            #expect(check(token, settings: UserTokenSettings(keySet: set.text)) == user("_alice"))
        }
        #expect(Set(tokens).count == 2)
        #expect(Set(tokens.map { SessionStanding.sessionID(of: $0) }).count == 1)
    }

    @Test func `a token beyond the limit is not examined`() {
        let token = String(repeating: "A", count: Limits.maximumUserTokenBytes + 1)
        #expect(
            check(token, settings: UserTokenSettings(sharedSecret: TestRelay.sharedSecret))
                == .failure(.tooLong(limit: Limits.maximumUserTokenBytes)))
    }
}
