import HTTPTypes

/// The head of a request as it is forwarded to the owner of the store: a pure decision on a
/// client's head.
///
/// If two parsers disagree about where a body ends, a client can smuggle in requests in this
/// relay's name. So the length is written again in a single form, and methods with an uncertain
/// body are refused.
struct ForwardedHead: Sendable, Hashable {
    /// The request that is sent.
    let request: HTTPRequest
    /// Whether the request asks for a WebSocket.
    let isUpgrade: Bool
    /// Whether the owner must accept the body before it is sent.
    let asksFirst: Bool
    /// Whether the client itself asked for that.
    let isExpected: Bool

    /// The methods that are forwarded.
    ///
    /// `TRACE` and `CONNECT` are not among them, because servers differ in how they read what
    /// follows their heads.
    private static let methods: Set<HTTPRequest.Method> = [
        .get, .head, .post, .put, .patch, .delete, .options,
    ]
    /// The methods whose request without a length has an empty body, which is then stated.
    private static let withBody: Set<HTTPRequest.Method> = [.post, .put, .patch]

    /// The reason why a request is not forwarded.
    struct Refusal: Error, Hashable {
        /// The HTTP status.
        let status: Int
        let reason: String
    }

    /// Creates the head to forward from a client's head, which came from `origin`.
    ///
    /// - Throws: ``Refusal`` if it cannot be forwarded.
    init(of head: HTTPRequest, from origin: CallOrigin) throws(Refusal) {
        guard Self.methods.contains(head.method) else {
            throw Refusal(
                status: 501,
                reason: "only GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS can be forwarded to "
                    + "the relay that owns the store")
        }
        var request = head
        isUpgrade = LiveUpgrade.asks(head) && LiveUpgrade.mayLeave(head)
        isExpected = head.headerFields[.expect] != nil
        Self.removeWhatIsOfOneConnection(from: &request.headerFields)
        let length = try Self.frame(&request)
        asksFirst =
            isExpected
            || ForwardedCall.asksFirst(
                length: length, isChunked: request.headerFields[.transferEncoding] != nil)
        if isUpgrade {
            request.headerFields[.connection] = "Upgrade"
            request.headerFields[.upgrade] = "websocket"
        }
        request.headerFields[.expect] = asksFirst ? "100-continue" : nil
        // HTTP/1.0 need not name a host. The forwarded request is HTTP/1.1, where an empty name
        // says so.
        request.authority = request.authority ?? ""
        origin.write(to: &request.headerFields)
        self.request = request
    }

    /// Removes the fields of the client's connection alone, including those that `Connection` names
    /// (RFC 9110, §7.6.1).
    private static func removeWhatIsOfOneConnection(from fields: inout HTTPFields) {
        for name in (fields[.connection] ?? "").split(separator: ",") {
            // The fields of the body's length must stay, even if `Connection` names them.
            guard let name = HTTPField.Name(name.trimmed),
                ![.contentLength, .transferEncoding].contains(name)
            else { continue }
            fields[name] = nil
        }
        for name in [HTTPField.Name.keepAlive, .proxyConnection, .connection, .upgrade, .te] {
            fields[name] = nil
        }
    }

    /// Writes the length of the body in a single form, and returns it if it is known.
    private static func frame(_ request: inout HTTPRequest) throws(Refusal) -> Int? {
        let lengths = request.headerFields[values: .contentLength]
        guard request.headerFields[.transferEncoding] == nil else {
            request.headerFields[.contentLength] = nil
            request.headerFields[.transferEncoding] = "chunked"
            return nil
        }
        guard let first = lengths.first else {
            if withBody.contains(request.method) { request.headerFields[.contentLength] = "0" }
            return 0
        }
        guard lengths.count == 1, first.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let length = Int(first)
        else { throw Refusal(status: 400, reason: "Content-Length: must be one number") }
        request.headerFields[.contentLength] = String(length)
        return length
    }
}
