import Crypto
import FoundationEssentials
import RelayModel

/// The credentials for an S3-like store.
package struct BucketCredentials: Sendable, Hashable {
    package let accessKeyID: String
    let secret: String
    /// The session token of temporary credentials.
    let sessionToken: String?

    package init(accessKeyID: String, secret: String, sessionToken: String? = nil) {
        self.accessKeyID = accessKeyID
        self.secret = secret
        self.sessionToken = sessionToken
    }

    /// Parses a credentials file of the AWS tools; returns `nil` if there is no key in it.
    ///
    /// The profile `default` counts, or else the first one.
    package init?(file text: String) {
        var profiles: [String: [String: String]] = [:]
        var order: [String] = []
        var name = "default"
        for line in text.split(whereSeparator: \.isNewline).prefix(1000) {
            let line = line.trimmingPrefix(while: \.isWhitespace)
            if line.hasPrefix("[") {
                name = String(line.dropFirst().prefix { $0 != "]" })
                order.append(name)
                continue
            }
            let parts = line.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, !line.hasPrefix("#") else { continue }
            profiles[name, default: [:]][Self.trimmed(parts[0])] = Self.trimmed(parts[1])
        }
        guard let profile = profiles["default"] ?? order.first.flatMap({ profiles[$0] }),
            let key = profile["aws_access_key_id"], let secret = profile["aws_secret_access_key"],
            !key.isEmpty, !secret.isEmpty
        else { return nil }
        self.init(accessKeyID: key, secret: secret, sessionToken: profile["aws_session_token"])
    }

    private static func trimmed(_ text: Substring) -> String {
        let isSpace = { (sign: Character) in sign == " " || sign == "\t" }
        let rest = text.drop(while: isSpace)
        return rest.lastIndex { !isSpace($0) }.map { String(rest[...$0]) } ?? ""
    }
}

/// AWS Signature Version 4 of one request of S3
/// (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).
struct RequestSignature {
    let method: String
    let host: String
    /// The path as it is sent: percent-encoded.
    let path: String
    /// The query parameters, not encoded.
    let query: [(name: String, value: String)]
    /// The other headers to be signed.
    let headers: [(name: String, value: String)]
    /// The SHA-256 of the body, in hexadecimal digits.
    let bodyHash: String
    let region: String
    let moment: Timestamp

    /// Returns the headers that the request must have in addition to ``headers``.
    ///
    /// The host header is among them, because the client would leave out a default port, which is
    /// part of what is signed.
    func signed(with credentials: BucketCredentials) -> [(name: String, value: String)] {
        var all = headers
        all.append(("host", host))
        all.append(("x-amz-content-sha256", bodyHash))
        all.append(("x-amz-date", date))
        if let token = credentials.sessionToken { all.append(("x-amz-security-token", token)) }
        all.sort { $0.name < $1.name }
        let names = all.map(\.name).joined(separator: ";")
        let scope = "\(date.prefix(8))/\(region)/s3/aws4_request"
        let request =
            [method, path, Self.text(of: query)]
            + [all.map { "\($0.name):\($0.value)\n" }.joined(), names, bodyHash]
        let text = ["AWS4-HMAC-SHA256", date, scope, Self.hash(request.joined(separator: "\n"))]
            .joined(separator: "\n")
        var key = Array("AWS4\(credentials.secret)".utf8)
        for part in [String(date.prefix(8)), region, "s3", "aws4_request"] {
            key = Self.code(part, key)
        }
        let signature = Hexadecimal.encode(Self.code(text, key))
        let authorization =
            "AWS4-HMAC-SHA256 Credential=\(credentials.accessKeyID)/\(scope),"
            + "SignedHeaders=\(names),Signature=\(signature)"
        return all.filter { $0.name.hasPrefix("x-amz-") || $0.name == "host" }.filter { header in
            !headers.contains { $0.name == header.name }
        } + [("authorization", authorization)]
    }

    /// The moment in the form `20130524T000000Z`.
    private var date: String {
        moment.iso8601Seconds.filter { $0 != "-" && $0 != ":" }
    }

    /// Returns the query parameters in the form in which they are sent and signed.
    static func text(of query: [(name: String, value: String)]) -> String {
        query.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }
            .sorted().joined(separator: "&")
    }

    static func hash(_ text: String) -> String { hash(Array(text.utf8)) }

    static func hash(_ bytes: [UInt8]) -> String { Hexadecimal.encode(SHA256.hash(data: bytes)) }

    private static func code(_ text: String, _ key: [UInt8]) -> [UInt8] {
        Array(
            HMAC<SHA256>.authenticationCode(
                for: Array(text.utf8), using: SymmetricKey(data: key)))
    }
}
