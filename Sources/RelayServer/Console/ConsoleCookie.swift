import HTTPTypes
import RelayModel

/// The cookie of a session, and what a request that has one must show besides: that the console's
/// own page made it.
struct ConsoleCookie: Sendable {
    /// Whether the listener is reached over TLS, so that the cookie is for TLS alone.
    let scheme: String
    /// The shard whose store knows the sessions, which the cookie names, so that any relay can hand
    /// a call to it; `nil` where the store is the only one.
    var shard: String?

    /// The calls that the cookie is sent with.
    private static let path = "/admin/1"
    /// What pages send with whatever may change something: no other site can, without asking.
    static let pageHeader = "X-Belfry-Console"

    /// The secret in the cookie of a request; `nil` if it has none.
    ///
    /// A request that has a token of its own is judged by that.
    func secret(in request: RelayRequest) -> String? {
        guard request.headers[.authorization] == nil,
            let value = Self.value(in: request.headers, at: request.authority)
        else { return nil }
        let secret = value.lastIndex(of: ".").map { value[value.index(after: $0)...] } ?? value
        return secret.isEmpty ? nil : String(secret)
    }

    /// The shard whose store knows the session of a request; `nil` if its cookie names none.
    static func shard(of head: HTTPRequest) -> String? {
        guard let value = Self.value(in: head.headerFields, at: head.authority) else {
            return nil
        }
        return value.lastIndex(of: ".").map { String(value[..<$0]) }
    }

    private static func value(in fields: HTTPFields, at authority: String?) -> Substring? {
        let name = Self.name(at: authority)
        for field in fields[values: .cookie] {
            // By bytes, as browsers write it.
            for pair in field.utf8.split(separator: UInt8(ascii: ";")) {
                let bytes = pair.drop { $0 == UInt8(ascii: " ") }
                guard bytes.starts(with: "\(name)=".utf8) else { continue }
                return Substring(bytes.dropFirst(name.utf8.count + 1)).prefix(128)
            }
        }
        return nil
    }

    /// Gives the client the cookie for `secret`; it ends with the browser at the latest.
    func give(_ secret: String, to request: RelayRequest, in answer: inout RelayAnswer) {
        let value = (shard.map { "\($0)." } ?? "") + secret
        answer.headers[.setCookie] =
            "\(Self.name(at: request.authority))=\(value)\(attributes(request))"
    }

    /// Takes the cookie back.
    func take(from request: RelayRequest, in answer: inout RelayAnswer) {
        answer.headers[.setCookie] =
            "\(Self.name(at: request.authority))=; Max-Age=0\(attributes(request))"
    }

    private func attributes(_ request: RelayRequest) -> String {
        let isForwarded =
            request.peer?.isTrustedProxy == true && request.header("X-Forwarded-Proto") == "https"
        let isSecure = scheme == "https" || isForwarded
        return "; Path=\(Self.path); HttpOnly; SameSite=Strict" + (isSecure ? "; Secure" : "")
    }

    /// Cookies know hosts and no ports: two relays on one machine must not sign each other out.
    private static func name(at authority: String?) -> String {
        let digits = authority?.wholeMatch(of: /.*:([0-9]{1,5})/).map { String($0.1) }
        return "belfry-console" + (digits.map { "-\($0)" } ?? "")
    }

    /// Lets a request in that a page of this origin made, which a cookie alone does not show.
    ///
    /// - Throws: ``AuthenticationRefusal/notAllowed(_:)`` that says what is missing.
    static func checkOrigin(of request: RelayRequest) throws(AuthenticationRefusal) {
        let reads = request.method == "GET" || request.method == "HEAD"
        if let site = request.header("Sec-Fetch-Site") {
            guard site == "same-origin" || (reads && site == "none") else {
                throw .notAllowed("a session is for the console's own pages, and this is another")
            }
        } else if let origin = request.header("Origin") {
            // Browsers say nothing of the site where there is no TLS.
            let host = request.authority ?? ""
            guard ["http://\(host)", "https://\(host)"].contains(origin) else {
                throw .notAllowed("a session is for the console's own pages, and this is another")
            }
        }
        guard reads || request.header(pageHeader) != nil else {
            throw .notAllowed("\(pageHeader): a session needs it with whatever is not GET")
        }
    }
}
