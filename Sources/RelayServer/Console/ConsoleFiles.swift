import EmbeddedFiles
import HTTPTypes
import RelayModel

/// The console's files, which are embedded in the executable.
struct ConsoleFiles: Sendable {
    /// All files of the folder `Pages`.
    static let all: [PageFile] = [
        pageName, "access.js", "api.js", "condition.js", "console.css", "console.js",
        "containers.js", "deliveries.js", "dom.js", "drafts.js", "explain.js", "icon.svg",
        "journal.js", "now.js", "numbers.js", "parked.js", "parts.js", "phones.js", "plot.js",
        "pushes.js", "rehearse.js", "route.js", "send.js", "table.js", "tail.js", "text.js",
        "users.js",
    ].map { PageFile($0, EmbeddedFile($0).bytes) }

    /// The page that is served at every address that is not a file.
    static let pageName = "index.html"

    /// The Content-Security-Policy of the console's pages: they may load only what the relay
    /// serves.
    static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        + "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

    private let files: [String: PageFile]
    private let compressed = CompressedFiles()

    init(_ files: [PageFile] = Self.all) {
        self.files = Dictionary(uniqueKeysWithValues: files.map { ($0.name, $0) })
    }

    /// Returns the routes of the files, and a redirect from the root path.
    ///
    /// At the root path, `root` answers programs; a client that accepts HTML is redirected.
    func routes(root: @escaping RelayRoute.Respond) -> [RelayRoute] {
        [
            RelayRoute(open: .console, "GET", "/") { request in
                guard request.header("Accept")?.contains("text/html") == true else {
                    return try await root(request)
                }
                var answer = RelayAnswer(status: 302)
                answer.headers[.location] = "/console/"
                return answer
            },
            RelayRoute(open: .console, "GET", "/console") { try answer(Self.pageName, $0) },
            RelayRoute(open: .console, "GET", "/console/{page}") {
                try answer($0.parameters["page"] ?? "", $0)
            },
            // These are addresses within the page; the page itself reads them.
            RelayRoute(open: .console, "GET", "/console/{page}/{place}") {
                try answer($0.parameters["place"] ?? "", $0, isFile: false)
            },
        ]
    }

    /// Returns the file, or the page if the name is not that of a file.
    private func answer(
        _ name: String, _ request: RelayRequest, isFile: Bool = true
    ) throws(APIError) -> RelayAnswer {
        let known = isFile ? files[name] : nil
        guard let file = known ?? (name.contains(".") ? nil : files[Self.pageName]) else {
            throw APIError(.notFound, "the console has no file \"\(name.shortened)\"")
        }
        return file.answer(to: request, under: Self.policy, from: compressed)
    }
}
