import Crypto
import HTTPTypes
import RelayModel
import Synchronization

/// A file of the relay's own web pages.
struct PageFile: Sendable {
    let name: String
    let bytes: [UInt8]
    /// The media type, from the suffix of the name.
    let type: String
    /// The entity tag of the content.
    let tag: String
    /// The entity tag of the compressed content.
    private let compressedTag: String

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
        "json": "application/json; charset=utf-8", "ts": "text/plain; charset=utf-8",
    ]

    /// Returns the file, or the answer that the browser has it already.
    ///
    /// - Parameters:
    ///   - request: The request for it.
    ///   - policy: The content security policy of the page that it is or belongs to.
    ///   - compressed: The cache of compressed files.
    /// - Returns: 200 or 304.
    func answer(
        to request: RelayRequest, under policy: String, from compressed: CompressedFiles
    ) -> RelayAnswer {
        let isCompressed = request.takesGzip
        let tag = isCompressed ? compressedTag : self.tag
        let bytes = isCompressed ? compressed[self] : self.bytes
        let isKnown = request.headers[values: .ifNoneMatch]
            .flatMap { $0.split(separator: ",") }
            .contains { $0.trimmingPrefix(" ").trimmingPrefix("W/") == tag }
        var answer = RelayAnswer(status: isKnown ? 304 : 200)
        answer.headers[.eTag] = tag
        answer.headers[.vary] = "Accept-Encoding"
        // A new version of the relay may have another file, so browsers ask each time, and get 304.
        answer.headers[.cacheControl] = "no-cache"
        answer.headers[.contentSecurityPolicy] = policy
        answer.headers[.xContentTypeOptions] = "nosniff"
        answer.headers[.referrerPolicy] = "no-referrer"
        guard !isKnown else {
            answer.headers[.contentLength] = String(bytes.count)
            return answer
        }
        answer.contentType = type
        if isCompressed { answer.headers[.contentEncoding] = "gzip" }
        answer.body = bytes
        return answer
    }
}

/// The compressed files, each of which is made at its first request.
///
/// Concurrency: a lock protects the table; two simultaneous first requests may both make the file.
final class CompressedFiles: Sendable {
    private let files = Mutex<[String: [UInt8]]>([:])

    subscript(_ file: PageFile) -> [UInt8] {
        if let known = files.withLock({ $0[file.tag] }) { return known }
        let made = GzipFile.containing(file.bytes)
        files.withLock { $0[file.tag] = made }
        return made
    }
}

extension RelayRequest {
    /// Whether the answer may be compressed with gzip, from `Accept-Encoding` (RFC 9110, §12.5.3).
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
