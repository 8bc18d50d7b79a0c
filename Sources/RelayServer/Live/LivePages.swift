import EmbeddedFiles
import HTTPTypes
import RelayModel

/// The web client, and a page that shows it: files that are in the executable.
enum LivePages {
    /// What a page of the relay's own may do: nothing but what the relay itself serves.
    private static let policy = "default-src 'self'; frame-ancestors 'none'"

    static var routes: [RelayRoute] {
        [
            file("/live/client.js", "text/javascript; charset=utf-8", client),
            file("/live/belfry-live.js", "text/javascript; charset=utf-8", client),
            file(
                "/live/client.d.ts", "text/plain; charset=utf-8",
                EmbeddedFile("belfry-live.d.ts").bytes),
            file(
                "/live/live-page.js", "text/javascript; charset=utf-8",
                EmbeddedFile("live-page.js").bytes),
            file("/live", "text/html; charset=utf-8", EmbeddedFile("live.html").bytes),
        ]
    }

    /// The web client as pages load it: without the lines of comment, which are for whoever reads
    /// its source.
    static let client = uncommented(EmbeddedFile("belfry-live.js").bytes)

    /// A text without the lines that are nothing but comment.
    static func uncommented(_ text: [UInt8]) -> [UInt8] {
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let comment = Array("//".utf8)
        return Array(
            lines.filter { !$0.drop { $0 == UInt8(ascii: " ") }.starts(with: comment) }
                .joined(separator: [UInt8(ascii: "\n")]))
    }

    private static func file(_ path: String, _ type: String, _ bytes: [UInt8]) -> RelayRoute {
        RelayRoute(open: .operation, "GET", path) { _ in
            var answer = RelayAnswer(status: 200)
            answer.contentType = type
            answer.headers[.contentSecurityPolicy] = policy
            answer.body = bytes
            return answer
        }
    }
}
