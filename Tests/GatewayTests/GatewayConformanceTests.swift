import Crypto
import Foundation
import Gateway
import GatewaySimulator
import RelayModel
import Testing

@Suite(.timeLimit(.minutes(30))) struct GatewayConformanceTests {
    @Test func `a push is sent in the documented form`() async throws {
        let privateKey = P256.Signing.PrivateKey()
        try await GatewayRig.run {
            $0.trust = .keys([
                SigningKey(
                    keyID: "KEY0000001", teamID: "TEAM000001", publicKey: privateKey.publicKey)
            ])
        } world: {
            $0.credentials = { _, _ in .sample(privateKey) }
        } _: { rig in
            let request = try PushRequest.sample(
                token: String(repeating: "ab", count: 32), collapseID: "art-1",
                expiration: Timestamp(seconds: 4_000_000_000, nanoseconds: 5),
                payload: #"{"aps":{"alert":"Ünïcode"}}"#)
            let outcome = try await rig.outcome(of: request)
            #expect(outcome == .accepted)
            let push = try #require(rig.simulator.pushes.first)
            #expect(push.payload == request.notification.payload)
            var headers = Dictionary(
                push.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { "\($0), \($1)" })
            let removed = headers.removeValue(forKey: "authorization")
            let authorization = try #require(removed)
            #expect(authorization.hasPrefix("bearer eyJ"))
            #expect(
                headers == [
                    ":method": "POST", ":scheme": "https",
                    ":authority": "127.0.0.1:\(rig.simulator.port)",
                    ":path": "/3/device/" + String(repeating: "ab", count: 32),
                    "apns-id": "01234567-89ab-4def-0000-000000000001",
                    "apns-topic": "com.example.Art", "apns-push-type": "alert",
                    "apns-priority": "10", "apns-collapse-id": "art-1",
                    "apns-expiration": "4000000000", "content-type": "application/json",
                    "content-length": "\(request.notification.payload.count)",
                ])
        }
    }

    @Test func `a connection is ramped, opened to its width, and used again`() async throws {
        try await GatewayRig.run {
            $0.overLimit = .sendsGoAway
            $0.overLimitBeforeAcknowledgement = .sendsGoAway
            $0.settingsDelay = .milliseconds(30)
        } _: { rig in
            let requests = try (1...600).map { try PushRequest.sample(ticket: $0) }
            let first = await rig.outcomes(of: Array(requests.prefix(300)))
            let second = await rig.outcomes(of: Array(requests.suffix(300)))
            #expect(first.allSatisfy { $0 == .accepted } && second.allSatisfy { $0 == .accepted })
            #expect(rig.simulator.streamLimitViolations == [])
            let totals = rig.simulator.totals
            #expect(totals.connections == 1)
            #expect(totals.accepted == 600)
            #expect(totals.duplicates == 0)
        }
    }

    @Test func `visible pushes overtake background ones, and containers take turns`() async throws {
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(.accept, times: 1, delay: .milliseconds(300) ... .milliseconds(300)))
        } settings: {
            $0.streamsPerConnection = 1
        } _: { rig in
            // The first push is alone on the connection while the others queue up behind it.
            let requests = [
                try PushRequest.sample(ticket: 1, container: "iCloud.a"),
                try .sample(ticket: 2, container: "iCloud.a", pushType: .background),
                try .sample(ticket: 3, container: "iCloud.a"),
                try .sample(ticket: 4, container: "iCloud.a"),
                try .sample(ticket: 5, container: "iCloud.b"),
            ]
            _ = await rig.outcomes(of: requests)
            let order = rig.simulator.pushes.map { $0.apnsID.suffix(1) }
            #expect(order == ["1", "5", "3", "4", "2"] || order == ["1", "3", "5", "4", "2"])
        }
    }

    @Test func `credentials never share a connection`() async throws {
        let keys = [P256.Signing.PrivateKey(), P256.Signing.PrivateKey()]
        try await GatewayRig.run { _ in
        } world: {
            $0.credentials = { container, _ in
                container.container.rawValue == "iCloud.a"
                    ? .sample(keys[0], keyID: "KEYA") : .sample(keys[1], keyID: "KEYB")
            }
        } _: { rig in
            let requests = try (1...20).map {
                try PushRequest.sample(
                    ticket: $0, container: $0.isMultiple(of: 2) ? "iCloud.a" : "iCloud.b")
            }
            let outcomes = await rig.outcomes(of: requests)
            #expect(outcomes.allSatisfy { $0 == .accepted })
            var tokens: [Int: Set<String>] = [:]
            for push in rig.simulator.pushes {
                tokens[push.connection, default: []].insert(push.header("authorization") ?? "")
            }
            #expect(tokens.count == 2)
            #expect(tokens.values.allSatisfy { $0.count == 1 })
            #expect(Set(tokens.values).count == 2)
        }
    }

    @Test func `a certificate is shown instead of a token`() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "belfry-certificate-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var configuration = SimulatedGateway.Configuration()
        configuration.certificates = .kept(folder: folder)
        let maker = try await SimulatedGateway.start(configuration)
        await maker.stop()
        let pem = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
            .filter { !$0.contains("ca") }
            .map { try String(contentsOfFile: "\(folder)/\($0)", encoding: .utf8) }.joined()
        try #require(pem.contains("PRIVATE KEY") && pem.contains("BEGIN CERTIFICATE"))
        try await GatewayRig.run { _ in
        } world: {
            $0.credentials = { _, _ in
                .certificate(.init(packing: .pem, bytes: Array(pem.utf8)))
            }
        } _: { rig in
            // The simulator requires a token, so its refusal shows that none was sent.
            let outcome = try await rig.outcome(of: .sample())
            guard case .refused(let refusal) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(refusal.reason == "MissingProviderToken")
            #expect(rig.simulator.pushes.first?.header("authorization") == nil)
        }
    }

    @Test func `a push that the gateway would refuse is refused before sending`() async throws {
        try await GatewayRig.run { rig in
            let outcome = try await rig.outcome(
                of: .sample(collapseID: String(repeating: "x", count: 65)))
            #expect(
                outcome
                    == .refused(
                        Gateway.GatewayRefusal(
                            status: 0, reason: "BadCollapseId", reaction: .deadLetter,
                            urgency: .alarm,
                            explanation: "not sent: the collapse ID is longer than 64 bytes")))
            #expect(rig.simulator.totals.received == 0)
        }
    }

    @Test func `without a credential nothing is sent`() async throws {
        try await GatewayRig.run { _ in
        } world: {
            $0.credentials = { _, _ in nil }
        } _: { rig in
            let outcome = try await rig.outcome(of: .sample())
            #expect(
                outcome
                    == .refused(
                        .withoutCredential(
                            "iCloud.com.example.Art/production has no credential for the "
                                + "gateway's production environment")))
        }
    }

    @Test func `an unreadable key is reported without its text`() async throws {
        let key = GatewayCredential.SigningKey(
            teamID: "T", keyID: "K", privateKeyPEM: ConcealedText("secret"))
        try await GatewayRig.run { _ in
        } world: {
            $0.credentials = { _, _ in key.map { .signingKey($0) } }
        } _: { rig in
            let outcome = try await rig.outcome(of: .sample())
            #expect(
                outcome
                    == .refused(
                        .withoutCredential(
                            "the signing key cannot be read: a P-256 private key in PEM form "
                                + "is expected")))
        }
    }

    @Test func `a changed credential is used from the next request on`() async throws {
        let keys = [P256.Signing.PrivateKey(), P256.Signing.PrivateKey()]
        let isChanged = Flag()
        try await GatewayRig.run { _ in
        } world: {
            $0.credentials = { _, _ in
                isChanged.isSet ? .sample(keys[1], keyID: "NEW") : .sample(keys[0])
            }
        } _: { rig in
            let request = try PushRequest.sample(ticket: 1)
            _ = await rig.outcomes(of: [request])
            isChanged.set()
            rig.gateway.credentialChanged(for: request.container)
            _ = await rig.outcomes(of: [try .sample(ticket: 2)])
            #expect(Set(rig.simulator.pushes.map { $0.header("authorization") }).count == 2)
            await rig.events.wait {
                if case .retired(_, _, .credentialReplaced, _, _) = $0 { true } else { false }
            }
        }
    }
}
