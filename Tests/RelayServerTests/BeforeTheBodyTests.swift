import Foundation
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// Callers are authenticated before their body is read, and no caller exceeds its rate.
@Suite(.serialized, .timeLimit(.minutes(15))) struct BeforeTheBodyTests {
    private static let container = "iCloud.com.example.Art"

    /// Announces a large body, sends none of it, and returns the response.
    private static func announce(
        _ target: String, headers: String = "", length: String = "Content-Length: 2000000",
        to relay: RunningRelay, admin: Bool = false
    ) async throws -> String {
        let port = try await relay.relay.ports.port(of: admin ? "admin" : "http")
        let connection = try await RawConnection.open(port)
        try await connection.send(
            "POST \(target) HTTP/1.1\r\nHost: relay\r\n\(headers)\(length)\r\n\r\n")
        return await connection.hearAll()
    }

    @Test func `an unknown caller is refused before its body is read`() async throws {
        try await RunningRelay.with { (relay: RunningRelay) async throws in
            let name = "\(relay.container.key.container)"
            let place = "/database/1/\(name)/development/public/records/modify"
            let cases = [
                (place, "", "401"), ("\(place)?ckAPIToken=wrong", "", "401"),
                (place, "Authorization: Bearer wrong\r\n", "401"),
                (place, "X-Apple-CloudKit-Request-KeyID: x\r\n", "401"),
                ("/database/1/iCloud.none/development/public/records/modify", "", "404"),
                ("/changes/1/\(name)/development/none", "", "404"),
                ("/changes/1/iCloud.none/development/database", "", "404"),
                ("/nothing", "", "404"), ("/healthz", "", "405"),
            ]
            for (target, headers, status) in cases {
                for length in ["Content-Length: 2000000", "Transfer-Encoding: chunked"] {
                    let answer = try await Self.announce(
                        target, headers: headers, length: length, to: relay)
                    #expect(answer.hasPrefix("HTTP/1.1 \(status)"), "\(target) \(answer)")
                    #expect(answer.lowercased().contains("connection: close"), "\(answer)")
                }
            }
            let answer = try await Self.announce(
                "/admin/1/containers", headers: "Authorization: Bearer wrong\r\n", to: relay,
                admin: true)
            #expect(answer.hasPrefix("HTTP/1.1 40"), "\(answer)")
        }
    }

    @Test func `a body announced as too long is refused at once`() async throws {
        try await RunningRelay.with { (relay: RunningRelay) async throws in
            let answer = try await Self.announce(
                "/changes/1/\(relay.container.key.container)/development/database",
                length: "Content-Length: 9000000", to: relay)
            #expect(answer.contains("the body is larger than 4194304 bytes"), "\(answer)")
        }
    }

    @Test func `an address that exceeds its rate learns when to retry`() async throws {
        try await RunningRelay.with(["--rates-address", "10"]) { (relay: RunningRelay) in
            var limited: RelayClient.Reply?
            for _ in 0..<200 where limited == nil {
                let reply = try await relay.client.call("GET", "/healthz")
                if reply.status == 429 { limited = reply }
            }
            #expect(limited?.retryAfter == "1")
            #expect(limited?["reason"] == "too many requests from your address")
            // The rate for each address does not apply to the operator.
            #expect(try await relay.metrics().contains(#"requests_limited_total{by="address"} "#))
            #expect(try await relay.client.administer("GET", "overview").status == 200)
        }
    }

    @Test func `refused credentials cost more of a rate than requests`() async throws {
        try await RunningRelay.with(["--rates-address", "50"]) { (relay: RunningRelay) in
            let target =
                "/database/1/\(relay.container.key.container)/development/public/users/caller"
            var statuses: [Int] = []
            for _ in 0..<40 { statuses.append(try await relay.client.call("GET", target).status) }
            #expect(statuses.first == 401)
            #expect(statuses.contains(429))
        }
    }

    @Test func `a key has the rate of its container`() async throws {
        try await RunningRelay.with(["--rates-containers", "\(Self.container)=2/1000"]) {
            (relay: RunningRelay) in
            let name = "\(relay.container.key.container)"
            let isNamed = name == Self.container
            var statuses: Set<Int> = []
            for number in 0..<400 where !statuses.contains(429) {
                let reply = try await relay.client.call(
                    "POST", "/changes/1/\(name)/development/database",
                    headers: ["Content-Type": "application/json"],
                    body: JSONValue.change("create", "record\(number)").text)
                statuses.insert(reply.status)
            }
            #expect(statuses.contains(429) == isNamed, "\(name): \(statuses)")
        }
    }

    @Test func `an operator sets a container's rates while the relay runs`() async throws {
        try await RunningRelay.with(["--rates-containers", "\(Self.container)=2/2"]) { relay in
            let path = relay.container.path
            func post() async throws -> Int {
                try await relay.client.call(
                    "POST",
                    "/changes/1/\(relay.container.key.container)/development/database",
                    headers: ["Content-Type": "application/json"],
                    body: JSONValue.change("create", "record").text
                ).status
            }
            try await relay.client.administer("PATCH", path, ["rates": ["key": 0]]).expect(200)
            for _ in 0..<40 { #expect(try await post() == 200) }
            let set = try await relay.client.administer("PATCH", path, ["rates": ["key": 1]])
            #expect(set["rates"] == ["key": 1])
            var statuses: Set<Int> = []
            for _ in 0..<40 { statuses.insert(try await post()) }
            #expect(statuses.contains(429))
            let cleared = try await relay.client.administer("PATCH", path, ["rates": .null])
            #expect(cleared["rates"] == nil)
            for rates: JSONValue in [["key": -1], ["user": 1_000_001], ["keys": 1], 3] {
                let refused = try await relay.client.administer("PATCH", path, ["rates": rates])
                #expect(refused.status == 400, "\(refused.text)")
            }
        }
    }

    @Test func `guessing the administrative token is slow, and the operator still gets in`()
        async throws
    {
        try await RunningRelay.with { (relay: RunningRelay) in
            let url = relay.client.adminURL
            var guesser = relay.client
            guesser.url = url
            for number in 0..<14 {
                let reply = try await guesser.call(
                    "GET", "/admin/1/overview",
                    headers: ["Authorization": "Bearer guess\(number)"])
                #expect(reply.status == 401)
            }
            #expect(try await relay.client.administer("GET", "overview").status == 200)
            #expect(try await relay.metrics().contains(#"requests_limited_total{by="admin"} "#))
        }
    }
}
