import EmbeddedFiles

/// The web client and the page that demonstrates it, as files in the executable.
enum LivePages {
    /// The Content-Security-Policy of the pages: they may load only what the relay itself serves.
    private static let policy = "default-src 'self'; frame-ancestors 'none'"

    static var routes: [RelayRoute] {
        let compressed = CompressedFiles()
        return [
            ("/live/client.js", PageFile("client.js", client)),
            ("/live/belfry-live.js", PageFile("belfry-live.js", client)),
            ("/live/client.d.ts", PageFile("client.d.ts", EmbeddedFile("belfry-live.d.ts").bytes)),
            ("/live/live-page.js", PageFile("live-page.js", EmbeddedFile("live-page.js").bytes)),
            ("/live", PageFile("live.html", EmbeddedFile("live.html").bytes)),
        ].map { path, file in
            RelayRoute(open: .operation, "GET", path) { request in
                file.answer(to: request, under: policy, from: compressed)
            }
        }
    }

    /// The web client as pages load it, without comment lines and indentation, which only readers
    /// of the source need.
    static let client = uncommented(EmbeddedFile("belfry-live.js").bytes)

    /// Returns a script without indentation and without the lines that consist only of a comment;
    /// the script must not contain multi-line strings.
    static func uncommented(_ text: [UInt8]) -> [UInt8] {
        let comment = Array("//".utf8)
        return Array(
            text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
                .map { $0.drop { $0 == UInt8(ascii: " ") } }
                .filter { !$0.starts(with: comment) }
                .joined(separator: [UInt8(ascii: "\n")]))
    }
}
