import Foundation
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// The user's credentials are verified before the body of a request is read.
@Suite(.serialized, .timeLimit(.minutes(15))) struct UserBeforeTheBodyTests {
    private static let modifying =
        #"{"operations":[{"operationType":"create","record":{"recordType":"Artwork","#
        + #""recordName":"r","fields":{}}}]}"#

    private static func place(_ relay: RunningRelay, _ module: String = "database") -> String {
        "/\(module)/1/\(relay.container.key.container)/development"
    }

    private static func head(
        _ target: String, _ headers: [String] = [], length: Int = 2_000_000
    ) -> String {
        let fields = ["Host: relay", "Content-Length: \(length)"] + headers
        return "POST \(target) HTTP/1.1\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    /// Announces a large body, sends none of it, and returns the response.
    private static func announce(
        _ target: String, _ headers: [String] = [], to relay: RunningRelay
    ) async throws -> String {
        let connection = try await RawConnection.open(await relay.relay.ports.port(of: "http"))
        try await connection.send(head(target, headers))
        return await connection.hearAll()
    }

    @Test func `an invalid user token is refused before the body`() async throws {
        try await RunningRelay.with { relay in
            let place = Self.place(relay)
            let key = "?ckAPIToken=\(relay.container.apiToken)"
            let good = SampleContainer.userToken("alice")
            let session = try #require(
                try await relay.client.call(
                    "GET", "\(place)/public/users/caller\(key)&ckWebAuthToken=\(good)"
                ).renewedToken)
            try await relay.client.call(
                "POST", "\(place)/public/users/signOut\(key)&ckWebAuthToken=\(session)"
            ).expect(200)
            for (token, status) in [
                ("made.up.token", "401"), ("s1_AAAA", "401"),
                (session, "421"), (good, "421"),
            ] {
                for action in ["public/records/modify", "private/subscriptions/modify"] {
                    let answer = try await Self.announce(
                        "\(place)/\(action)\(key)&ckWebAuthToken=\(token)", to: relay)
                    #expect(answer.hasPrefix("HTTP/1.1 \(status)"), "\(action) \(answer)")
                    #expect(answer.lowercased().contains("connection: close"))
                }
            }
        }
    }

    @Test func `without a required user no body is read`() async throws {
        try await RunningRelay.with { relay in
            let key = "?ckAPIToken=\(relay.container.apiToken)"
            let device = Self.place(relay, "device")
            let place = Self.place(relay)
            for target in [
                "\(place)/private/records/modify", "\(place)/shared/changes/zone",
                "\(place)/private/zones/modify", "\(place)/public/subscriptions/modify",
                "\(device)/tokens/register", "\(device)/notifications/markRead",
                "\(place)/public/users/lookup/id", "\(place)/public/users/signOut",
            ] {
                let answer = try await Self.announce(target + key, to: relay)
                #expect(answer.hasPrefix("HTTP/1.1 421"), "\(target) \(answer)")
                #expect(answer.contains("redirectURL"), "\(answer)")
            }
        }
    }

    @Test func `a server must name its user before the body`() async throws {
        try await RunningRelay.with { relay in
            let made = try await relay.client.administer(
                "POST", relay.container.path + "/keys", ["kind": "bearer"]
            ).expect(201)
            guard case .string(let secret)? = made["secret"] else { throw UnexpectedSecret() }
            let key = "Authorization: Bearer \(secret)"
            let long = String(repeating: "a", count: 300)
            for (action, fields) in [
                ("private/records/modify", [key]),
                ("public/records/modify", [key, "X-Belfry-User: \(long)"]),
                ("public/records/modify", [key, "X-Belfry-User:"]),
                // Bytes that are no UTF-8 would all be read as the same character, and make one
                // user of two.
                ("private/records/modify", [key, "X-Belfry-User: Jos\u{FFFD}"]),
                ("private/records/modify", [key, "X-Belfry-User: a", "X-Belfry-User: b"]),
            ] {
                let answer = try await Self.announce(
                    "\(Self.place(relay))/\(action)", fields, to: relay)
                #expect(answer.hasPrefix("HTTP/1.1 400"), "\(action) \(answer)")
            }
        }
    }

    private struct UnexpectedSecret: Error {}

    @Test func `a caller that may act without a user still can`() async throws {
        try await RunningRelay.with { relay in
            try await relay.client.administer(
                "PUT", relay.container.path + "/schema",
                [
                    "recordTypes": [
                        [
                            "name": "Artwork", "shadow": true,
                            "grants": [["permission": "CREATE", "role": "_world"]],
                        ]
                    ]
                ]
            ).expect(200)
            let target =
                "\(Self.place(relay))/public/records/modify?ckAPIToken=\(relay.container.apiToken)"
            let connection = try await RawConnection.open(await relay.relay.ports.port(of: "http"))
            try await connection.send(Self.head(target, length: Self.modifying.utf8.count))
            try await connection.send(Self.modifying)
            let answer = await connection.hear(until: "recordChangeTag")
            #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
        }
    }

    @Test func `with a body a token is renewed once, and its user is counted once`() async throws {
        try await RunningRelay.with(["--rates-user", "1"]) { relay in
            let target = { (token: String) in
                "\(Self.place(relay))/public/records/modify?ckAPIToken=\(relay.container.apiToken)"
                    + "&ckWebAuthToken=\(token)"
            }
            var token = SampleContainer.userToken("carol")
            var tokens: Set<String> = []
            // Ten calls at once are allowed; if calls were counted twice, the sixth would be too
            // many.
            for number in 0..<9 {
                let reply = try await relay.client.call(
                    "POST", target(token),
                    body: Self.modifying.replacing(#""r""#, with: #""r\#(number)""#)
                ).expect(200)
                token = try #require(reply.renewedToken)
                #expect(tokens.insert(token).inserted)
            }
            let sessions = try await relay.client.administer(
                "GET", relay.container.path + "/sessions?user=carol")
            #expect(sessions["sessions", "0"] != nil && sessions["sessions", "1"] == nil)
        }
    }
}
