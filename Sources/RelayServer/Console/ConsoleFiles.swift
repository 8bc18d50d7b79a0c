import Crypto
import EmbeddedFiles
import HTTPTypes
import RelayModel
import Synchronization

/// The console's files, which are in the executable.
struct ConsoleFiles: Sendable {
    /// One file.
    struct File: Sendable {
        let name: String
        let bytes: [UInt8]
        /// Its media type; by the ending of its name.
        let type: String
        /// Names this content.
        let tag: String
        /// Names it where it is compressed.
        let compressedTag: String

        init(_ name: String, _ bytes: [UInt8]) {
            self.name = name
            self.bytes = bytes
            let ending = name.split(separator: ".").last.map(String.init) ?? ""
            type = Self.types[ending] ?? "application/octet-stream"
            let digest = Hexadecimal.encode(SHA256.hash(data: bytes).prefix(16))
            tag = "\"\(digest)\""
            compressedTag = "\"\(digest)-gzip\""
        }

        private static let types = [
            "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8",
            "css": "text/css; charset=utf-8", "svg": "image/svg+xml", "png": "image/png",
            "json": "application/json; charset=utf-8",
        ]
    }

    /// Every file of the folder `Pages`.
    static let all: [File] = [
        pageName, "access.js", "api.js", "condition.js", "console.css", "console.js",
        "containers.js", "deliveries.js", "dom.js", "drafts.js", "explain.js", "icon.svg",
        "journal.js", "now.js", "numbers.js", "parked.js", "parts.js", "phones.js", "plot.js",
        "pushes.js", "rehearse.js", "route.js", "send.js", "table.js", "tail.js", "text.js",
        "users.js",
    ].map { File($0, EmbeddedFile($0).bytes) }

    /// The page, which is every address that is no file.
    static let pageName = "index.html"

    /// What a page of the console may do: nothing but what the relay itself serves.
    static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        + "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

    private let files: [String: File]
    private let compressed = CompressedFiles()

    init(_ files: [File] = Self.all) {
        self.files = Dictionary(uniqueKeysWithValues: files.map { ($0.name, $0) })
    }

    /// The routes of the files, and what leads there from the bare address.
    ///
    /// `root` answers programs at the bare address; who can show a page is led on.
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
            // Places within a page, which the page itself reads.
            RelayRoute(open: .console, "GET", "/console/{page}/{place}") {
                try answer($0.parameters["place"] ?? "", $0, isFile: false)
            },
        ]
    }

    /// The file, or the page if the name is none of a file.
    private func answer(
        _ name: String, _ request: RelayRequest, isFile: Bool = true
    ) throws(APIError) -> RelayAnswer {
        let known = isFile ? files[name] : nil
        guard let file = known ?? (name.contains(".") ? nil : files[Self.pageName]) else {
            throw APIError(.notFound, "there is no file \"\(name.shortened)\" of the console")
        }
        let isCompressed = request.takesGzip
        let tag = isCompressed ? file.compressedTag : file.tag
        let bytes = isCompressed ? compressed[file] : file.bytes
        let isKnown = request.headers[values: .ifNoneMatch]
            .flatMap { $0.split(separator: ",") }
            .contains { $0.trimmingPrefix(" ").trimmingPrefix("W/") == tag }
        var answer = RelayAnswer(status: isKnown ? 304 : 200)
        answer.headers[.eTag] = tag
        answer.headers[.vary] = "Accept-Encoding"
        // A new version of the relay is a new console: browsers ask each time, and get 304.
        answer.headers[.cacheControl] = "no-cache"
        answer.headers[.contentSecurityPolicy] = Self.policy
        answer.headers[.xContentTypeOptions] = "nosniff"
        answer.headers[.referrerPolicy] = "no-referrer"
        guard !isKnown else {
            answer.headers[.contentLength] = String(bytes.count)
            return answer
        }
        answer.contentType = file.type
        if isCompressed { answer.headers[.contentEncoding] = "gzip" }
        answer.body = bytes
        return answer
    }
}

/// The files as browsers take them, compressed when they are asked for the first time.
///
/// Concurrency: a lock around the table; two who ask for the same at once may both make it.
private final class CompressedFiles: Sendable {
    private let files = Mutex<[String: [UInt8]]>([:])

    subscript(_ file: ConsoleFiles.File) -> [UInt8] {
        if let known = files.withLock({ $0[file.tag] }) { return known }
        let made = GzipFile.containing(file.bytes)
        files.withLock { $0[file.tag] = made }
        return made
    }
}

extension RelayRequest {
    /// Whether an answer may be a gzip file, as `Accept-Encoding` says (RFC 9110, §12.5.3).
    var takesGzip: Bool {
        let words = headers[values: .acceptEncoding].flatMap {
            $0.lowercased().split(separator: ",")
        }
        func takes(_ name: String) -> Bool? {
            for word in words {
                let parts = word.split(separator: ";").map { $0.filter { $0 != " " } }
                guard parts.first == name else { continue }
                let weight = parts.dropFirst().first { $0.hasPrefix("q=") }?.dropFirst(2)
                return weight.map { (Double($0) ?? 0) > 0 } ?? true
            }
            return nil
        }
        return takes("gzip") ?? takes("*") ?? false
    }
}
