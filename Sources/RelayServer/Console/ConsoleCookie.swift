import HTTPTypes
import RelayModel

/// The cookie of a console session, and the check that a request with it comes from the console's
/// own page.
struct ConsoleCookie: Sendable {
    /// The scheme of the listener; with `https`, the cookie is sent over TLS only.
    let scheme: String
    /// The shard whose store knows the sessions; `nil` if the store is the only one.
    ///
    /// The cookie contains it, so that any relay can forward a call to that shard.
    var shard: String?

    /// The path prefix of the calls with which browsers send the cookie.
    private static let path = "/admin/1"
    /// The header field that the console sends with every call that is not GET.
    ///
    /// Another site cannot send it without a CORS preflight.
    static let pageHeader = "X-Belfry-Console"

    /// Returns the secret in the cookie of a request; `nil` if there is none.
    ///
    /// A request that has a token of its own is judged by the token, so this returns `nil` then.
    func secret(in request: RelayRequest) -> String? {
        guard request.headers[.authorization] == nil,
            let value = Self.value(in: request.headers, at: request.authority)
        else { return nil }
        let secret = value.lastIndex(of: ".").map { value[value.index(after: $0)...] } ?? value
        return secret.isEmpty ? nil : String(secret)
    }

    /// Returns the shard whose store knows the session of a request; `nil` if its cookie names
    /// none.
    static func shard(of head: HTTPRequest) -> String? {
        guard let value = Self.value(in: head.headerFields, at: head.authority) else {
            return nil
        }
        return value.lastIndex(of: ".").map { String(value[..<$0]) }
    }

    private static func value(in fields: HTTPFields, at authority: String?) -> Substring? {
        let name = Self.name(at: authority)
        for field in fields[values: .cookie] {
            // The field is split by bytes, because a `Character` may include combining marks after
            // the separator.
            for pair in field.utf8.split(separator: UInt8(ascii: ";")) {
                let bytes = pair.drop { $0 == UInt8(ascii: " ") }
                guard bytes.starts(with: "\(name)=".utf8) else { continue }
                return Substring(bytes.dropFirst(name.utf8.count + 1)).prefix(128)
            }
        }
        return nil
    }

    /// Sets the cookie for `secret`; it ends when the browser closes, at the latest.
    func give(_ secret: String, to request: RelayRequest, in answer: inout RelayAnswer) {
        let value = (shard.map { "\($0)." } ?? "") + secret
        answer.headers[.setCookie] =
            "\(Self.name(at: request.authority))=\(value)\(attributes(request))"
    }

    /// Removes the cookie from the client.
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

    /// Returns the cookie's name, which contains the port.
    ///
    /// Cookies are per host and not per port, and two relays on one machine must not sign each
    /// other out.
    private static func name(at authority: String?) -> String {
        let digits = authority?.wholeMatch(of: /.*:([0-9]{1,5})/).map { String($0.1) }
        return "belfry-console" + (digits.map { "-\($0)" } ?? "")
    }

    /// Checks that a page of this origin made the request, which the cookie alone does not prove.
    ///
    /// - Throws: ``AuthenticationRefusal/notAllowed(_:)`` that says what is missing.
    static func checkOrigin(of request: RelayRequest) throws(AuthenticationRefusal) {
        let reads = request.method == "GET" || request.method == "HEAD"
        if let site = request.header("Sec-Fetch-Site") {
            guard site == "same-origin" || (reads && site == "none") else {
                throw .notAllowed(
                    "sessions are only for the console's own pages, and this request comes from "
                        + "another page")
            }
        } else if let origin = request.header("Origin") {
            // Browsers do not send `Sec-Fetch-Site` without TLS.
            let host = request.authority ?? ""
            guard ["http://\(host)", "https://\(host)"].contains(origin) else {
                throw .notAllowed(
                    "sessions are only for the console's own pages, and this request comes from "
                        + "another page")
            }
        }
        guard reads || request.header(pageHeader) != nil else {
            throw .notAllowed(
                "\(pageHeader): this header is required for every session request other than GET")
        }
    }
}
