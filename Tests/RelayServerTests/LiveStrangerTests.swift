import RelayModel
import RelayServer
import RelayTestKit
import Synchronization
import Testing

/// What a connection may cost before it is known whose it is, and what one may that is.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveStrangerTests {
    typealias Live = LiveScenarioTests

    private static func stranger(_ relay: RunningRelay) async throws -> LiveConnection {
        try await LiveConnection.open(
            try await relay.relay.ports.port(of: "http"), path: Live.path(relay)
        ).0
    }

    @Test func `guessing API tokens is slowed as it is over HTTP`() async throws {
        try await RunningRelay.with(["--rates-address", "50"]) { relay in
            var codes: [JSONValue] = []
            for number in 0..<20 {
                let guess = try await Self.stranger(relay)
                try await guess.send(["type": "hello", "ckAPIToken": .string("wrong\(number)")])
                codes.append(await guess.frame("bye")?["code"] ?? .null)
                try await guess.close()
            }
            #expect(codes.first == 4403)
            #expect(codes.last == 4429)
        }
    }

    @Test func `a stranger's frame has little room, and one's who is known has more`() async throws
    {
        try await RunningRelay.with { relay in
            let long = JSONValue.object(
                ["type": "fence", "id": .string(String(repeating: "x", count: 500_000))])
            let stranger = try await Self.stranger(relay)
            try await stranger.send(long)
            #expect(await stranger.frame("bye")?["code"] == 4413)
            let page = try await Live.open(relay)
            try await page.send(long)
            #expect(await page.frame("fenced") != nil)
        }
    }

    @Test func `a result of some megabytes arrives by each way in`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let count = 80
            let text = String(repeating: "x", count: 60_000)
            for number in 0..<count {
                try await relay.container.post(
                    Live.artwork("create", "r\(number)", ["text": .string(text)]))
            }
            let set: JSONObject = [
                "version": 1, "queries": [["id": "all", "recordType": "Artwork"]],
            ]
            let page = try await Live.open(relay)
            var object = set
            object["type"] = "set"
            try await page.send(.object(object))
            var records = 0
            for frame in await page.frames(until: "at") {
                if case .array(let part)? = frame["records"] { records += part.count }
            }
            #expect(records == count)
            let keys =
                "?ckAPIToken=\(relay.container.apiToken)"
                + "&ckWebAuthToken=\(SampleContainer.userToken("alice"))"
            let body = JSONValue.object(["format": "plain", "set": .object(set), "wait": 0]).text
            let poll = try await relay.client.call(
                "POST", Live.path(relay) + "/poll" + keys, body: body
            ).expect(200)
            #expect(poll.text.utf8.count > count * text.utf8.count)
            let stream = try await RawConnection.open(
                try await relay.relay.ports.port(of: "http"))
            try await stream.send(
                "POST \(Live.path(relay))/stream\(keys) HTTP/1.1\r\nHost: localhost\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            let heard = await stream.hear(until: "id: ")
            #expect(heard.utf8.count > count * text.utf8.count)
        }
    }
}
