import Foundation
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import RelayServer

/// A user's rights may change between the head of a request and the end of its body.
@Suite(.serialized, .timeLimit(.minutes(15))) struct UserJudgedTwiceTests {
    private static let body =
        #"{"operations":[{"operationType":"create","record":{"recordType":"Artwork","#
        + #""recordName":"r","fields":{}}}]}"#

    /// Sends the head of a request, runs `meanwhile` once it has been judged, and sends the body.
    ///
    /// Returns the response.
    private static func answer(
        _ relay: RunningRelay, token: String, meanwhile: () async throws -> Void
    ) async throws -> String {
        let connection = try await RawConnection.open(await relay.relay.ports.port(of: "http"))
        let target =
            "/database/1/\(relay.container.key.container)/development/private/records/modify"
            + "?ckAPIToken=\(relay.container.apiToken)&ckWebAuthToken=\(token)"
        try await connection.send(
            "POST \(target) HTTP/1.1\r\nHost: relay\r\nContent-Length: \(body.utf8.count)\r\n"
                + "Expect: 100-continue\r\nConnection: close\r\n\r\n")
        let goOn = await connection.hear(until: "\r\n\r\n")
        #expect(goOn.hasPrefix("HTTP/1.1 100"), "\(goOn)")
        try await meanwhile()
        try await connection.send(body)
        return await connection.hearAll()
    }

    private static func signOut(_ relay: RunningRelay, token: String) async throws {
        try await relay.client.call(
            "POST",
            "/database/1/\(relay.container.key.container)/development/public/users/signOut"
                + "?ckAPIToken=\(relay.container.apiToken)&ckWebAuthToken=\(token)"
        ).expect(200)
    }

    @Test func `a user who signs out while the body comes is refused`() async throws {
        try await RunningRelay.with { relay in
            let provider = SampleContainer.userToken("alice")
            let good = try await Self.answer(relay, token: provider) {}
            #expect(good.contains("recordChangeTag"), "\(good)")
            let session = try #require(
                try await relay.client.call(
                    "GET",
                    "/database/1/\(relay.container.key.container)/development/public/users/caller"
                        + "?ckAPIToken=\(relay.container.apiToken)&ckWebAuthToken=\(provider)"
                ).renewedToken)
            let ended = try await Self.answer(relay, token: provider) {
                try await Self.signOut(relay, token: session)
            }
            #expect(ended.hasPrefix("HTTP/1.1 421"), "\(ended)")
        }
    }

    @Test func `a user whose session ends while the body comes is refused`() async throws {
        try await RunningRelay.with { relay in
            let session = try #require(
                try await relay.client.call(
                    "GET",
                    "/database/1/\(relay.container.key.container)/development/public/users/caller"
                        + "?ckAPIToken=\(relay.container.apiToken)"
                        + "&ckWebAuthToken=\(SampleContainer.userToken("alice"))"
                ).renewedToken)
            let ended = try await Self.answer(relay, token: session) {
                try await Self.signOut(relay, token: session)
            }
            #expect(ended.hasPrefix("HTTP/1.1 421"), "\(ended)")
        }
    }

    @Test func `a caller whose administrative token is revoked while the body comes is refused`()
        async throws
    {
        try await RunningRelay.with { relay in
            let made = try await relay.client.administer(
                "POST", "tokens", ["label": "ops", "access": "change"])
            guard case .string(let id)? = made["id"], case .string(let secret)? = made["secret"]
            else {
                Issue.record("\(made.text)")
                return
            }
            func answer(meanwhile: () async throws -> Void) async throws -> String {
                let connection = try await RawConnection.open(
                    await relay.relay.ports.port(of: "admin"))
                let body = #"{"expirationSeconds":60}"#
                try await connection.send(
                    "PATCH /admin/1/\(relay.container.path) HTTP/1.1\r\nHost: relay\r\n"
                        + "Authorization: Bearer \(secret)\r\n"
                        + "Content-Length: \(body.utf8.count)\r\nExpect: 100-continue\r\n"
                        + "Connection: close\r\n\r\n")
                let goOn = await connection.hear(until: "\r\n\r\n")
                #expect(goOn.hasPrefix("HTTP/1.1 100"), "\(goOn)")
                try await meanwhile()
                try await connection.send(body)
                return await connection.hearAll()
            }
            let good = try await answer {}
            #expect(good.hasPrefix("HTTP/1.1 200"), "\(good)")
            let refused = try await answer {
                try await relay.client.administer("DELETE", "tokens/\(id)").expect(200)
            }
            #expect(refused.hasPrefix("HTTP/1.1 401"), "\(refused)")
            #expect(refused.contains("it was revoked"), "\(refused)")
        }
    }

    @Test func `a token is verified again if the container's keys change while the body comes`()
        async throws
    {
        try await RunningRelay.with { relay in
            let refused = try await Self.answer(
                relay, token: SampleContainer.userToken("alice")
            ) {
                try await relay.client.administer(
                    "PATCH", relay.container.path,
                    ["userTokens": ["sharedSecret": "another secret of 32 bytes or more"]]
                ).expect(200)
            }
            #expect(refused.hasPrefix("HTTP/1.1 401"), "\(refused)")
            #expect(refused.contains("the signature is not valid"), "\(refused)")
        }
    }

    @Test func `a verified token is valid for its own text, its settings and its time`() throws {
        let settings = UserTokenSettings(sharedSecret: TestRelay.sharedSecret)
        let text = TestRelay.userToken()
        let token = try UserTokenVerifier(settings).verify(text)
        #expect(token.isOf(text, by: settings))
        #expect(!token.isOf(TestRelay.userToken("_bob"), by: settings))
        var others = settings
        others.audience = "music"
        #expect(!token.isOf(text, by: others))
        #expect(try token.user(at: TestRelay.now).rawValue == "_alice")
        #expect(throws: UserTokenRefusal.expired) {
            try token.user(at: TestRelay.now.advanced(by: .seconds(3600)))
        }
    }
}
