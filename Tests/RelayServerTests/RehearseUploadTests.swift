import NIOCore
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// `subscriptions/rehearse/changes`: uploaded changes, which may be longer than a request.
@Suite(.serialized, .timeLimit(.minutes(30))) struct RehearseUploadTests {
    private static let draft = JSONValue.query(
        "draft", "price < 100", firesOn: ["create", "update"])

    private static func lines(_ first: JSONValue, _ changes: [JSONValue]) -> String {
        ([first] + changes).map(\.text).joined(separator: "\n") + "\n"
    }

    private static func ask(
        _ text: String, _ relay: RunningRelay, as user: String = "alice"
    ) async throws -> RelayClient.Reply {
        let target = relay.container.target(
            of: "subscriptions/rehearse/changes", as: user, in: "public")
        return try await relay.client.call("POST", target, body: text)
    }

    @Test func `a record type that occurs in the file is not called unknown`() async throws {
        try await RunningRelay.with { relay in
            // A record type is called unknown only if some other type is known.
            try await relay.container.post(.change("create", "a0"))
            let draft = JSONValue.query("d", adding: ["query": ["recordType": "Novel"]])
            let judged = try await Self.ask(
                Self.lines(
                    ["subscription": draft],
                    [.change("create", "n1", adding: ["recordType": "Novel"])]), relay
            ).expect(200)
            #expect(judged["fired"] == 1, "\(judged.text)")
            #expect(judged["warnings"] == nil, "\(judged.text)")
            let others = try await Self.ask(
                Self.lines(["subscription": draft], [.change("create", "a1")]), relay
            ).expect(200)
            #expect(
                others["warnings", "0", "warning"] == "unknownRecordType", "\(others.text)")
        }
    }

    @Test func `a file longer than a request is judged oldest first and not stored`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", "price < 20"))
            let head = try await relay.relay.store.head()
            let padding = String(repeating: "x", count: 1000)
            let changes = (0..<5000).map { number -> JSONValue in
                .change(
                    "create", "a\(number)",
                    ["price": .integer(Int64(number % 200)), "title": .string(padding)])
            }
            let text = Self.lines(
                ["subscriptionID": "q", "subscription": Self.draft, "examples": 2], changes)
            #expect(text.utf8.count > 2 * Limits.maximumRequestBytes)
            let reply = try await Self.ask(text, relay).expect(200)
            #expect(reply["fired"] == 2500, "\(reply.text)")
            #expect(reply["pushes"] == 5000, "alice has two devices")
            #expect(reply["lookedAt", "changes"] == 5000)
            #expect(reply["lookedAt", "end"] == "file")
            #expect(reply["change", "firedBefore"] == 500)
            #expect(reply["change", "added"] == 2000)
            #expect(reply["examples", "0", "recordName"] == "a4899", "the newest that fires it")
            #expect(reply["examples", "1", "recordName"] == "a4898")
            #expect(reply["nearMisses", "among"] == 100)
            #expect(try await relay.relay.store.head() == head)
            let twin = try await relay.client.administer(
                "POST", "\(relay.container.path)/rehearse/changes",
                text: Self.lines(
                    [
                        "user": "alice", "subscriptionID": "q", "subscription": Self.draft,
                        "examples": 2,
                    ], changes)
            ).expect(200)
            #expect(twin["fired"] == reply["fired"], "\(twin.text)")
            #expect(
                twin["change", "removed"] == reply["change", "removed"]
                    && twin["change", "added"] == reply["change", "added"], "\(twin.text)")
        }
    }

    @Test func `a once subscription names the first matching change of the file`() async throws {
        try await RunningRelay.with { relay in
            let once = JSONValue.query("draft", "price < 100", adding: ["firesOnce": true])
            let reply = try await Self.ask(
                Self.lines(
                    ["subscription": once],
                    [200, 60, 90].map { .change("create", "a\($0)", ["price": .integer($0)]) }),
                relay
            ).expect(200)
            #expect(reply["fired"] == 1, "\(reply.text)")
            #expect(reply["once", "position"] == "2")
            #expect(reply["examples", "0", "recordName"] == "a60")
        }
    }

    @Test func `invalid lines are refused with their number and the allowed values`() async throws {
        try await RunningRelay.with { relay in
            let good = JSONValue.change("create", "a1", ["price": 1]).text
            let first = JSONValue.object(["subscription": Self.draft]).text
            for (text, status, reason) in [
                ("", 400, "line 1: must describe the rehearsal"),
                ("\n\n", 400, "line 1: must describe the rehearsal"),
                (
                    String(repeating: "\n", count: 1000) + first, 400,
                    "line 1: must describe the rehearsal"
                ),
                ("{", 400, "the first line, which describes the rehearsal: not JSON"),
                (good, 400, "the first line, which describes the rehearsal: operation: unknown"),
                (#"{"what": 1}"#, 400, "what"),
                (#"{"subscription": 1}"#, 400, "subscription"),
                (#"{"subscriptionID": "none"}"#, 404, "there is no subscription"),
                (first + "\n" + good + "\nnonsense", 400, "line 3: "),
                (first + "\n" + good + "\n\n{}", 400, "line 4: "),
                (first + "\r\n" + good + "\r\n\r\n{}", 400, "line 4: "),
                (
                    ([first] + Array(repeating: good, count: 600)).joined(separator: "\n")
                        + "\n\nnonsense\n" + good, 400, "line 603: "
                ),
                (
                    first + "\n" + String(repeating: " ", count: Limits.maximumWebhookBytes + 1),
                    413, "line 2: it is longer than"
                ),
            ] {
                let reply = try await Self.ask(text, relay)
                #expect(reply.status == status, "\(text.prefix(80)): \(reply.text)")
                #expect(reply.text.contains(reason), "\(reply.text)")
            }
            let operators = try await relay.client.administer(
                "POST", "\(relay.container.path)/rehearse/changes", text: first)
            #expect(operators.status == 400, "\(operators.text)")
            #expect(operators.text.contains("user"), "\(operators.text)")
            let apart = try await Self.ask("\n\r\n\(first)\n\n\r\n\(good)\n\n", relay)
                .expect(200)
            #expect(apart["lookedAt", "changes"] == 1, "\(apart.text)")
            let none = try await Self.ask(first, relay).expect(200)
            #expect(none["lookedAt", "changes"] == 0)
        }
    }

    // Regression: two users who sent nothing but line ends occupied both processors, even beyond
    // their time.
    @Test func `empty lines are reported too, and end when the reader stops`()
        async throws
    {
        let (parts, source) = AsyncThrowingStream<ByteBuffer, any Error>.makeStream()
        source.yield(ByteBuffer(string: "a\n\n\r\nb"))
        source.yield(ByteBuffer(string: "c\n" + String(repeating: "\n", count: 100)))
        source.finish()
        let lines = UploadedLines(parts: parts, longestLine: 10)
        var told: [String] = []
        try await lines.read { line, number in
            told.append("\(number) \(String(decoding: line, as: UTF8.self))")
            return number < 6
        }
        #expect(told == ["1 a", "2 ", "3 ", "4 bc", "5 ", "6 "])
    }

    @Test func `at its time limit an upload ends with the counts so far`() async throws {
        try await RunningRelay.with { relay in
            var settings = QueryAdmission.Settings()
            settings.uploadTime = .zero
            settings.turn = .zero
            let queries = QueryAdmission(settings: settings, clock: ContinuousClock())
            let over = try await queries.rehearse(
                .server, of: relay.container.key, isUpload: true
            ) { allowance in allowance.isOver }
            #expect(over)
            let usual = try await queries.rehearse(.server, of: relay.container.key) { allowance in
                allowance.isOver
            }
            #expect(!usual)
        }
    }
}
