import Crypto
import Foundation
import GatewaySimulator
import RelayModel
import Testing

@testable import Gateway

@Suite(.timeLimit(.minutes(30))) struct GatewayRefusalTests {
    private func refusal(_ outcome: PushOutcome) throws -> Gateway.GatewayRefusal {
        guard case .refused(let refusal) = outcome else {
            Issue.record("\(outcome)")
            throw CancellationError()
        }
        return refusal
    }

    @Test(arguments: ReasonTable.apns.rows)
    func `every row of the reason table is understood end to end`(row: ReasonRow) async throws {
        let privateKey = P256.Signing.PrivateKey()
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(.refuse(.init(status: row.status, reason: row.reason)), times: 1))
        } world: {
            // The token is an hour old, so that the answer "expired" is credible.
            let wall = $0.wallClock
            $0.credentials = { _, _ in .sample(privateKey) }
            $0.tokenStore = ProviderTokenStore(
                load: { key in
                    ProviderTokenRecord(
                        key: key, token: .token(of: key, signedWith: privateKey),
                        issuedAt: wall().advanced(by: .seconds(-1500)))
                }, keep: { _ in })
        } _: { rig in
            let refusal = try refusal(try await rig.outcome(of: .sample()))
            #expect(refusal.status == row.status)
            #expect(refusal.reason == row.reason)
            #expect(refusal.reaction == row.reaction)
            #expect(refusal.urgency == row.urgency)
            #expect(refusal.explanation == row.meaning)
        }
    }

    @Test(arguments: [1024, 1025, 3000, 12_000])
    func `the beginning of a long answer is kept, and the connection goes on`(
        length: Int
    ) async throws {
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(
                    .raw(
                        status: 400, contentType: "text/html",
                        body: String(repeating: "x", count: length)), times: 1))
        } _: { rig in
            let refusal = try refusal(try await rig.outcome(of: .sample()))
            #expect(refusal.status == 400)
            #expect(refusal.reason == String(repeating: "x", count: 200))
            #expect(try await rig.outcome(of: .sample(ticket: 2)) == .accepted)
            #expect(rig.simulator.totals.connections == 1)
        }
    }

    @Test(arguments: [3000, 5000, 12_000])
    func `a long header field does not affect the others`(length: Int) async throws {
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(
                    .raw(
                        status: 400, contentType: String(repeating: "x", count: length),
                        body: #"{"reason":"BadDeviceToken"}"#), times: 1))
        } _: { rig in
            let refusal = try refusal(try await rig.outcome(of: .sample()))
            #expect(refusal.status == 400)
            #expect(refusal.reason == "BadDeviceToken")
            #expect(try await rig.outcome(of: .sample(ticket: 2)) == .accepted)
            #expect(rig.simulator.totals.connections == 1)
        }
    }

    @Test func `a dead token is reported with the moment of its death`() async throws {
        try await GatewayRig.run {
            $0.devices[String(repeating: "ab", count: 32)] = .unregistered(
                since: Date(timeIntervalSince1970: 1_700_000_000))
        } _: { rig in
            let token = String(repeating: "ab", count: 32)
            let refusal = try refusal(try await rig.outcome(of: .sample(token: token)))
            let moment = Timestamp(seconds: 1_700_000_000)
            #expect(refusal.status == 410)
            #expect(refusal.timestamp == moment)
            #expect(refusal.reaction == .forgetDeviceToken(.dead(since: moment)))
        }
    }

    @Test func `the gateway's wish to wait is passed on`() async throws {
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(
                    .refuse(.init(status: 429, reason: "TooManyRequests", retryAfter: 17)),
                    times: 1))
        } _: { rig in
            let refusal = try refusal(try await rig.outcome(of: .sample()))
            #expect(refusal.retryAfter == .seconds(17))
            #expect(refusal.reaction == .retry(after: .seconds(17), scope: .device))
        }
    }

    @Test func `a gateway that asks to wait gets a short pause, and the wish is passed on`()
        async throws
    {
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(
                    .refuse(.init(status: 503, reason: "ServiceUnavailable", retryAfter: 60)),
                    times: 1))
        } _: { rig in
            let refusal = try refusal(try await rig.outcome(of: .sample(ticket: 1)))
            #expect(refusal.reaction == .retry(after: .seconds(60), scope: .gateway))
            // The caller decides how long the container waits, and shows and ends the wait.
            #expect(try await rig.outcome(of: .sample(ticket: 2)) == .accepted)
        }
    }

    @Test func `the text of a proxy's answer is kept for people`() async throws {
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(
                    .raw(status: 502, contentType: "text/html", body: "<h1>Bad gateway</h1>"),
                    times: 1))
        } _: { rig in
            let refusal = try refusal(try await rig.outcome(of: .sample()))
            #expect(refusal.reason == "<h1>Bad gateway</h1>")
            #expect(refusal.reaction == .retry(after: nil, scope: .gateway))
        }
    }

    @Test func `an expired token is renewed once and the push goes over a fresh connection`()
        async throws
    {
        let privateKey = P256.Signing.PrivateKey()
        try await GatewayRig.run {
            $0.maximumProviderTokenAge = .seconds(1440)
            $0.minimumProviderTokenInterval = .zero
        } world: {
            let wall = $0.wallClock
            $0.credentials = { _, _ in .sample(privateKey) }
            $0.tokenStore = ProviderTokenStore(
                load: { key in
                    ProviderTokenRecord(
                        key: key,
                        token: .token(
                            of: key, issuedAt: wall().seconds - 1500, signedWith: privateKey),
                        issuedAt: wall().advanced(by: .seconds(-1500)))
                }, keep: { _ in })
        } _: { rig in
            let first = try refusal(try await rig.outcome(of: .sample(ticket: 1)))
            #expect(first.reason == "ExpiredProviderToken")
            #expect(first.reaction == .renewProviderToken)
            let second = try await rig.outcome(of: .sample(ticket: 2))
            #expect(second == .accepted)
            #expect(rig.simulator.totals.connections == 2)
            let minted = rig.events.all.count {
                if case .mintedProviderToken = $0 { true } else { false }
            }
            #expect(minted == 1)
        }
    }

    @Test func `a young token that is called expired is tried on another connection, not renewed`()
        async throws
    {
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(
                    .refuse(.init(status: 403, reason: "ExpiredProviderToken")), times: 1))
        } _: { rig in
            let first = try refusal(try await rig.outcome(of: .sample(ticket: 1)))
            #expect(first.reaction == .retryOnFreshConnection)
            #expect(first.urgency == .routine)
            let second = try await rig.outcome(of: .sample(ticket: 2))
            #expect(second == .accepted)
            #expect(rig.simulator.totals.connections == 2)
            #expect(Set(rig.simulator.pushes.map { $0.header("authorization") }).count == 1)
        }
    }

    @Test func `a fresh token that is called expired again points to the clock, for a few seconds`()
        async throws
    {
        try await GatewayRig.run {
            $0.maximumProviderTokenAge = .seconds(1800)
        } world: {
            let wall = $0.wallClock
            $0.wallClock = { wall().advanced(by: .seconds(-3600)) }
        } _: { rig in
            let first = try refusal(try await rig.outcome(of: .sample(ticket: 1)))
            #expect(first.reaction == .retryOnFreshConnection)
            let refusal = try refusal(try await rig.outcome(of: .sample(ticket: 2)))
            #expect(refusal.trialAfter == .seconds(4))
            #expect(refusal.reason == "ExpiredProviderToken")
            #expect(refusal.reaction == .pauseContainer)
            #expect(refusal.urgency == .alarm)
            #expect(refusal.explanation.contains("this machine's clock, which is probably slow"))
        }
    }

    @Test func `a refused key gets one fresh connection, then the container pauses`() async throws {
        let trusted = P256.Signing.PrivateKey()
        try await GatewayRig.run {
            $0.trust = .keys([
                SigningKey(keyID: "KEY0000001", teamID: "TEAM000001", publicKey: trusted.publicKey)
            ])
        } _: { rig in
            let first = try refusal(try await rig.outcome(of: .sample(ticket: 1)))
            #expect(first.reason == "InvalidProviderToken")
            #expect(first.reaction == .retryOnFreshConnection)
            let began = ContinuousClock.now
            let second = try refusal(try await rig.outcome(of: .sample(ticket: 2)))
            #expect(second.reaction == .pauseContainer)
            #expect(rig.simulator.totals.connections == 2)
            let third = try await rig.outcome(of: .sample(ticket: 3))
            let elapsed = ContinuousClock.now - began
            let pauses = rig.events.all.compactMap { event -> Duration? in
                if case .backingOff(_, _, let pause) = event { pause } else { nil }
            }
            let pause = try #require(pauses.first)
            #expect(pause >= PoolBackOff.base / 2)
            switch third {
            case .notSent(let cause):
                #expect(cause.reason == "the gateway answered 403 InvalidProviderToken")
            case .refused(let again):
                #expect(elapsed >= pause, "tried again before the pause was over")
                #expect(again.reaction == .pauseContainer)
            default: Issue.record("\(third)")
            }
        }
    }

    @Test func `a token from before a restart is used again`() async throws {
        let kept = KeptTokens()
        let credential = GatewayCredential.sample(P256.Signing.PrivateKey())
        for _ in 0..<2 {
            try await GatewayRig.run { _ in
            } world: {
                $0.credentials = { _, _ in credential }
                $0.tokenStore = kept.tokenStore
            } _: { rig in
                let outcome = try await rig.outcome(of: .sample())
                #expect(outcome == .accepted)
            }
        }
        #expect(kept.count == 1)
    }
}

extension ConcealedText {
    /// Returns a token that is signed with `privateKey`.
    static func token(
        of key: ProviderTokenRecord.Key, issuedAt: Int64 = Timestamp.now.seconds,
        signedWith privateKey: P256.Signing.PrivateKey
    ) -> ConcealedText {
        let signer = GatewayCredential.SigningKey(
            teamID: key.teamID, keyID: key.keyID,
            privateKeyPEM: ConcealedText(privateKey.pemRepresentation)
        ).flatMap { try? ProviderTokenSigner($0) }
        let token = try? signer?.sign(issuedAt: Timestamp(seconds: issuedAt))
        return token ?? ConcealedText("")
    }
}
