import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import PostgresFollowing
import RelayTestKit
import Synchronization
import Testing

@testable import belfry

/// What is believed of answers to posted rows: what is said to be taken, the database forgets.
@Suite struct FollowPostingTests {
    private static let url = "https://relay.example/changes/1/c/development/s"

    @Test(arguments: [
        (200, #"{"results":[{"status":"appended","position":"7"}]}"#), (202, #"{"results":[]}"#),
    ]) func `rows are taken if the relay says so`(status: Int, body: String) {
        #expect(FollowPosting.outcome(status, Array(body.utf8), at: Self.url) == .taken)
    }

    @Test func `rows of which the relay has newer versions are counted`() {
        let body = #"{"results":[{"status":"stale","position":"7"},{"status":"appended"}]}"#
        #expect(
            FollowPosting.outcome(200, Array(body.utf8), at: Self.url) == .takenAsOlder(1))
    }

    @Test(arguments: [
        (200, "<html>Please sign in</html>"), (200, ""), (200, "{}"), (204, ""), (200, "[]"),
        (200, #"{"results":"none"}"#), (502, "<html>Bad gateway</html>"), (429, ""),
    ]) func `rows are posted again if something else answers`(status: Int, body: String) {
        guard
            case .not(.relayUnreachable) = FollowPosting.outcome(
                status, Array(body.utf8), at: Self.url)
        else {
            Issue.record("\(status) \(body)")
            return
        }
    }

    /// A relay that takes less than another, or a proxy before it, holds nobody up for good.
    @Test(arguments: [(25, [2, 2, 2, 3]), (9, [1, 1, 1, 1, 1, 1, 1, 1, 1]), (1000, [9])])
    func `rows that are too long together are posted by halves, in their order:`(
        most: Int, counts: [Int]
    ) async {
        let elements = (1...9).map { "{\"n\":\($0)}" }
        let rows = elements.map { Array($0.utf8) }
        let taken = Mutex<[[UInt8]]>([])
        let said = await FollowPosting.post(rows[...]) { body in
            guard body.count <= most else { return (413, .not(.relayRefuses("413"))) }
            taken.withLock { $0.append(body) }
            return (200, .takenAsOlder(1))
        }
        let bodies = taken.withLock { $0 }
        #expect(said == .takenAsOlder(counts.count))
        let texts = bodies.map { String(decoding: $0.dropFirst().dropLast(), as: UTF8.self) }
        #expect(texts.map { $0.split(separator: ",").count } == counts)
        #expect(texts.joined(separator: ",") == elements.joined(separator: ","))
    }

    @Test func `a row that is too long by itself is refused as it was`() async {
        let said = await FollowPosting.post([[1], [2]]) { body in
            guard body.contains(2) else { return (200, .taken) }
            return (413, .not(.relayRefuses("413")))
        }
        #expect(said == .not(.relayRefuses("413")))
    }

    @Test(arguments: [
        (#"{"results":[{"status":"unfinished","deleted":2000}]}"#, true),
        (#"{"results":[{"status":"complete","deleted":3}]}"#, false),
        (#"{"results":[{"status":"parked","number":1}]}"#, false), ("", false),
    ]) func `the end of a snapshot is posted again while there is more to delete`(
        body: String, isUnfinished: Bool
    ) {
        #expect(FollowPosting.isUnfinished(Array(body.utf8)) == isUnfinished)
    }

    @Test func `what the relay refuses is said`() {
        let body = #"{"reason":"there is no source \"s\""}"#
        #expect(
            FollowPosting.outcome(404, Array(body.utf8), at: Self.url)
                == .not(.relayRefuses(#"404: there is no source "s""#)))
    }

    @Test func `a source of another preset is told of`() {
        let body = #"{"reason":"[0].schema: unknown field"}"#
        #expect(
            FollowPosting.outcome(422, Array(body.utf8), at: Self.url)
                == .not(
                    .relayRefuses(
                        "422: [0].schema: unknown field; the source needs the preset postgres, "
                            + "and onUnmappable park")))
    }

    @Test func `beside a sandbox rows are posted to a source of their own`() async throws {
        let home = try Folder.make()
        let sandbox = try await DevCommandTests.Sandbox.start(["--port", "0"], home: home)
        let dev = try #require(DevAddress.find(["HOME": home.path]))
        let row =
            #"{"operation":"create","schema":"public","table":"t","key":["id"],"#
            + #""after":{"id":1},"position":"0/1;1"}"#
        for _ in 0..<2 {
            let source = try #require(try await SandboxSource.made(in: dev))
            #expect(source.url.hasSuffix("/development/\(SandboxSource.name)"))
            var request = HTTPClientRequest(url: source.url)
            request.method = .POST
            request.headers.add(name: "Content-Type", value: "application/json")
            request.headers.add(name: "Authorization", value: "Bearer \(source.secret)")
            request.body = .bytes(ByteBuffer(string: row))
            let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
            #expect(answer.status == .ok)
        }
        #expect(await sandbox.end() == 0)
    }

    @Test func `where an answer leads is told, and nothing that a terminal would obey`() {
        func response(_ status: HTTPResponseStatus, _ place: String?) -> HTTPClientResponse {
            HTTPClientResponse(
                version: .http1_1, status: status,
                headers: place.map { ["Location": $0] } ?? [:])
        }
        #expect(response(.ok, "https://a").redirection == nil)
        #expect(response(.found, "https://a/login").redirection == "https://a/login")
        #expect(response(.permanentRedirect, nil).redirection == "elsewhere")
        #expect(response(.found, "a\u{1B}[2J b").redirection == "a?[2J?b")
    }
}
