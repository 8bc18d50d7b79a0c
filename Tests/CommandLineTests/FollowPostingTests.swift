import AsyncHTTPClient
import NIOHTTP1
import PostgresFollowing
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

    @Test func `what the relay refuses is said`() {
        let body = #"{"reason":"there is no source \"s\""}"#
        #expect(
            FollowPosting.outcome(404, Array(body.utf8), at: Self.url)
                == .not(.relayRefuses(#"404: there is no source "s""#)))
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
