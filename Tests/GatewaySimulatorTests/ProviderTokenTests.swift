import Crypto
import Foundation
import GatewaySimulator
import Testing

@Suite(.timeLimit(.minutes(30))) struct ProviderTokenTests {
    struct Example: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var authorization: String?
        var reason: String?

        init(_ description: String, _ authorization: String?, _ reason: String?) {
            testDescription = description
            self.authorization = authorization
            self.reason = reason
        }
    }

    static let key = TestKey.team
    static let stranger = TestKey(keyID: "STRANGER00", teamID: "TEAM123456")
    static let impostor = TestKey(keyID: "KEY1234567", teamID: "TEAM123456")

    static let examples = [
        Example("a valid token", "bearer " + key.token(), nil),
        Example("a token with typ", "bearer " + key.token(header: header("ES256")), nil),
        Example("an hour old", "bearer " + key.token(age: 3600), nil),
        Example("older", "bearer " + key.token(age: 3601), "ExpiredProviderToken"),
        Example("a clock a little ahead", "bearer " + key.token(age: -5), nil),
        Example("a clock ahead", "bearer " + key.token(age: -60), "InvalidProviderToken"),
        Example("nothing", nil, "MissingProviderToken"),
        Example("a basic password", "Basic abc", "MissingProviderToken"),
        Example("an empty bearer", "bearer ", "MissingProviderToken"),
        Example("three dots", "bearer a.b.c", "InvalidProviderToken"),
        Example("two parts", "bearer a.b", "InvalidProviderToken"),
        Example(
            "no algorithm", "bearer " + key.token(header: header("none")), "InvalidProviderToken"),
        Example(
            "another algorithm", "bearer " + key.token(header: header("HS256")),
            "InvalidProviderToken"),
        Example("an unknown key", "bearer " + stranger.token(), "InvalidProviderToken"),
        Example("a forged signature", "bearer " + impostor.token(), "InvalidProviderToken"),
        Example("no signature", "bearer " + unsigned, "InvalidProviderToken"),
        Example("another team", "bearer " + otherTeam, "InvalidProviderToken"),
        Example("a date as text", "bearer " + textualDate, "InvalidProviderToken"),
        Example("a date out of range", "bearer " + farDate, "InvalidProviderToken"),
    ]

    static let unsigned = key.token().split(separator: ".").prefix(2).joined(separator: ".") + "."
    static let otherTeam = key.token(claims: #"{"iss":"OTHERTEAM0","iat":\#(TestKey.now)}"#)
    static let textualDate = key.token(claims: #"{"iss":"TEAM123456","iat":"\#(TestKey.now)"}"#)
    static let farDate = key.token(claims: #"{"iss":"TEAM123456","iat":-9223372036854775808}"#)

    static func header(_ algorithm: String) -> String {
        #"{"alg":"\#(algorithm)","kid":"KEY1234567","typ":"JWT"}"#
    }

    @Test(arguments: examples)
    func `a provider token is judged by form, key, team, signature and age`(
        example: Example
    ) async throws {
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            let outcome = await sender.send(
                TestPush().with(["authorization": example.authorization]))
            let expected = example.reason.map { CheckCase.refused(403, $0) } ?? "200"
            #expect(outcome.summary == expected)
        }
    }

    @Test func `an expired token blocks its connection`() async throws {
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            let old = "bearer " + Self.key.token(age: 4000)
            await sender.send(TestPush().with(["authorization": old]))
            let later = await sender.send(TestPush())
            #expect(later.summary == CheckCase.refused(403, "ExpiredProviderToken"))
            let other = try await TestSender.connect(to: gateway)
            let fresh = await other.send(TestPush())
            #expect(fresh.summary == "200")
        }
    }

    @Test func `an expired token may spare its connection`() async throws {
        try await SimulatedGateway.run {
            $0.afterExpiredToken = .refusesPush
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            let old = "bearer " + Self.key.token(age: 4000)
            await sender.send(TestPush().with(["authorization": old]))
            let later = await sender.send(TestPush())
            #expect(later.summary == "200")
        }
    }

    @Test func `tokens may be renewed every twenty minutes and not more often`() async throws {
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            var answers: [String] = []
            for age in [2000, 801, 800, 2000] {
                let token = "bearer " + Self.key.token(age: age)
                let push = TestPush().with(["authorization": token])
                answers.append(await sender.send(push).summary)
            }
            let tooMany = CheckCase.refused(429, "TooManyProviderTokenUpdates")
            #expect(answers == ["200", tooMany, "200", "200"])
        }
    }

    @Test func `a connection belongs to the first team and kind of key seen on it`() async throws {
        let other = TestKey(keyID: "OTHERKEY00", teamID: "OTHERTEAM0")
        let narrow = TestKey(keyID: "NARROWKEY0", teamID: "TEAM123456")
        let sandbox = TestKey(keyID: "SANDBOXKEY", teamID: "TEAM123456")
        try await SimulatedGateway.run {
            var narrowKey = narrow.signingKey
            narrowKey.topics = ["com.example.Art"]
            var sandboxKey = sandbox.signingKey
            sandboxKey.environment = .development
            $0.trust = .keys([TestKey.team.signingKey, other.signingKey, narrowKey, sandboxKey])
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            var answers: [String] = []
            for key in [TestKey.team, other, narrow, sandbox] {
                answers.append(
                    await sender.send(TestPush().with(["authorization": "bearer " + key.token()]))
                        .summary)
            }
            #expect(
                answers == [
                    "200", CheckCase.refused(403, "InvalidProviderToken"),
                    CheckCase.refused(403, "UnrelatedKeyIdInToken"),
                    CheckCase.refused(403, "BadEnvironmentKeyIdInToken"),
                ])
            let second = try await TestSender.connect(to: gateway)
            let push = TestPush().with([
                "authorization": "bearer " + narrow.token(), "apns-topic": "com.example.Other",
            ])
            let outcome = await second.send(push)
            #expect(outcome.summary == CheckCase.refused(400, "TopicDisallowed"))
        }
    }

    @Test func `without keys any well-formed token is accepted`() async throws {
        try await SimulatedGateway.run {
            $0.trust = .anyKey
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            let forged = await sender.send(
                TestPush().with(["authorization": "bearer " + Self.stranger.token()]))
            #expect(forged.summary == "200")
            let missing = await sender.send(TestPush().with(["authorization": nil]))
            #expect(missing.summary == CheckCase.refused(403, "MissingProviderToken"))
        }
    }

    @Test func `keys are read from PEM, public or private`() throws {
        let privateKey = P256.Signing.PrivateKey()
        for pem in [privateKey.pemRepresentation, privateKey.publicKey.pemRepresentation] {
            let key = try SigningKey(keyID: "K", teamID: "T", pem: pem)
            #expect(key.publicKey.rawRepresentation == privateKey.publicKey.rawRepresentation)
        }
        #expect(throws: (any Error).self) { try SigningKey(keyID: "K", teamID: "T", pem: "x") }
    }
}
