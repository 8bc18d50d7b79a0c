import AsyncHTTPClient
import ChangeSources
import Foundation
import NIOCore
import NIOHTTP1
import PostgresFollowing
import RelayModel
import RelayTestKit
import Synchronization
import Testing

@testable import belfry

/// How the relay's answers to posted rows are judged: the database drops what counts as taken.
@Suite struct FollowPostingTests {
    private static let url = "https://relay.example/changes/1/c/development/s"

    @Test(arguments: [
        (200, #"{"results":[{"status":"appended","position":"7"}]}"#), (202, #"{"results":[]}"#),
    ]) func `rows count as taken only if the relay says so`(status: Int, body: String) {
        #expect(FollowPosting.outcome(status, Array(body.utf8), at: Self.url) == .taken)
    }

    @Test func `rows older than the relay's versions are counted`() {
        let body = #"{"results":[{"status":"stale","position":"7"},{"status":"appended"}]}"#
        #expect(
            FollowPosting.outcome(200, Array(body.utf8), at: Self.url) == .takenAsOlder(1))
    }

    @Test(arguments: [
        (200, "<html>Please sign in</html>"), (200, ""), (200, "{}"), (204, ""), (200, "[]"),
        (200, #"{"results":"none"}"#), (502, "<html>Bad gateway</html>"), (429, ""),
    ]) func `rows are posted again if something other than the relay answers`(
        status: Int, body: String
    ) {
        guard
            case .not(.relayUnreachable) = FollowPosting.outcome(
                status, Array(body.utf8), at: Self.url)
        else {
            Issue.record("\(status) \(body)")
            return
        }
    }

    private static func row(
        _ id: Int64, _ operation: FollowedRow.Operation = .update, text: Int = 0, columns: Int = 0
    ) -> FollowedRow {
        var row = FollowedRow(
            operation, schema: "public", table: "t", key: ["id"], position: "p/\(id)")
        var fields: RecordFields = [
            "id": .integer(id), "text": .string(String(repeating: "x", count: text)),
        ]
        for number in 0..<columns { fields["c\(number)"] = .integer(1) }
        if operation != .create { row.before = RecordImage(fields) }
        if operation != .delete { row.after = RecordImage(fields) }
        return row
    }

    /// Posts rows to a receiver that accepts bodies of up to `most` bytes.
    ///
    /// Returns the requests that it accepted and the verdict on the rows.
    private static func post(
        _ rows: [FollowedRow], most: Int
    ) async -> (requests: [[JSONValue]], said: RowsTaken) {
        let taken = Mutex<[[UInt8]]>([])
        let said = await FollowPosting.post(rows.map { PostedRow($0) }[...]) { body in
            guard body.count <= most else { return (413, .not(.relayRefuses("413"))) }
            taken.withLock { $0.append(body) }
            return (200, .takenAsOlder(1))
        }
        let bodies = taken.withLock { $0 }
        let requests = bodies.map { body -> [JSONValue] in
            guard case .array(let elements)? = try? JSONValue(stored: body) else { return [] }
            return elements
        }
        return (requests, said)
    }

    private static func json(_ rows: [FollowedRow]) -> [JSONValue] {
        rows.map { .object($0.json) }
    }

    /// A relay or a proxy with a smaller limit for bodies than expected must not block the rows for
    /// ever.
    @Test(arguments: [(7, [2, 2, 2, 3]), (4, [1, 1, 1, 1, 1, 1, 1, 1, 1]), (30, [9])])
    func `rows that are too long together are posted in halves and in order:`(
        most: Int, counts: [Int]
    ) async throws {
        let rows = (1...9).map { Self.row($0) }
        let length = JSONValue.object(rows[0].json).utf8.count
        let (requests, said) = await Self.post(rows, most: most * length / 2)
        #expect(said == .takenAsOlder(counts.count))
        #expect(requests.map(\.count) == counts)
        #expect(requests.flatMap(\.self) == Self.json(rows))
    }

    @Test(arguments: [FollowedRow.Operation.create, .update, .delete])
    func `a row that is too long is sent without its long values and reported`(
        operation: FollowedRow.Operation
    ) async {
        let rows = [Self.row(1), Self.row(2, operation, text: 5000), Self.row(3)]
        let (requests, said) = await Self.post(rows, most: 1000)
        let expected = [rows[0], rows[1].lightened(), rows[2]]
        #expect(requests.flatMap(\.self) == Self.json(expected))
        #expect(expected[1].after?.fields["text"] == nil)
        #expect(
            said
                == .takenExcept(
                    RowExceptions(older: requests.count, tooLong: ["public.t (id=2)"])))
    }

    /// A deletion needs only the key.
    ///
    /// For another change the relay keeps what there is and parks it.
    @Test(arguments: [FollowedRow.Operation.create, .update, .delete])
    func `a row that is still too long is sent with its key only`(
        operation: FollowedRow.Operation
    ) async {
        let row = Self.row(2, operation, columns: 500)
        let (requests, said) = await Self.post([row, Self.row(3)], most: 1000)
        let bare = row.bare()
        #expect(requests.flatMap(\.self) == Self.json([bare, Self.row(3)]))
        #expect(bare.before == RecordImage(["id": .integer(2)], completeness: .partial))
        #expect(bare.after == nil && bare.operation == operation && bare.position == "p/2")
        #expect(
            said
                == .takenExcept(
                    RowExceptions(older: requests.count, tooLong: ["public.t (id=2)"])))
    }

    @Test func `it is reported if not even a key is accepted`() async {
        let (requests, said) = await Self.post([Self.row(1)], most: 20)
        #expect(requests == [])
        #expect(said == .not(.relayRefuses("413")))
    }

    @Test func `parked rows are counted`() {
        let body = #"{"results":[{"status":"parked","number":1},{"status":"appended"}]}"#
        #expect(
            FollowPosting.outcome(200, Array(body.utf8), at: Self.url)
                == .takenExcept(RowExceptions(parked: 1)))
    }

    @Test(arguments: [
        (#"{"results":[{"status":"unfinished","deleted":2000}]}"#, true),
        (#"{"results":[{"status":"complete","deleted":3}]}"#, false),
        (#"{"results":[{"status":"parked","number":1}]}"#, false), ("", false),
    ]) func `the end of a snapshot is repeated while there is more to delete`(
        body: String, isUnfinished: Bool
    ) {
        #expect(FollowPosting.isUnfinished(Array(body.utf8)) == isUnfinished)
    }

    /// Otherwise a proxy with a low limit would keep a follower from ever following.
    @Test func `the end of a snapshot that is too long is posted in halves`() async throws {
        var end = SnapshotEnd(
            database: "shop",
            tables: (0..<5).map { SnapshotEnd.Table(schema: "public", name: "t\($0)") }, version: 7)
        end.incomplete = [SnapshotEnd.Table(schema: "public", name: "parked")]
        let most = JSONValue.object(end.json).utf8.count - 30
        let taken = Mutex<[[UInt8]]>([])
        let answer = Array(#"{"results":[{"status":"complete","deleted":0}]}"#.utf8)
        let said = await FollowPosting.post(end) { body in
            guard body.count <= most else { return (413, .not(.relayRefuses("413")), []) }
            taken.withLock { $0.append(body) }
            return (200, .taken, answer)
        }
        #expect(said == .taken)
        let expected = [end.tables[..<2], end.tables[2...]].map { tables -> JSONValue in
            var half = end
            half.tables = Array(tables)
            return .array([.object(half.json)])
        }
        let posted = try taken.withLock { $0 }.map { try JSONValue(stored: $0) }
        #expect(posted == expected)
        // One that fits no request holds up nobody.
        let tooLong = await FollowPosting.post(end) { _ in (413, .not(.relayRefuses("413")), []) }
        #expect(tooLong == .taken)
    }

    @Test func `refusals of the relay are reported`() {
        let body = #"{"reason":"there is no source \"s\""}"#
        #expect(
            FollowPosting.outcome(404, Array(body.utf8), at: Self.url)
                == .not(.relayRefuses(#"404: there is no source "s""#)))
    }

    @Test func `a source with another preset is reported`() {
        let body = #"{"reason":"[0].schema: unknown field"}"#
        #expect(
            FollowPosting.outcome(422, Array(body.utf8), at: Self.url)
                == .not(
                    .relayRefuses(
                        "422: [0].schema: unknown field; the source needs the preset postgres, "
                            + "and onUnmappable park")))
    }

    @Test func `beside a sandbox rows are posted to a source made for them`() async throws {
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

    @Test func `a redirect is reported without control characters`() {
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
