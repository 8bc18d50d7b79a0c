import HTTPTypes

/// The head of a request as the owner of the store gets it: a pure decision over what a client
/// wrote.
///
/// Two parsers that disagree about where a body ends are a way for a client to write requests of
/// its own in this relay's name. So the length is said anew, in one form alone, and methods of
/// which that is not sure go no further.
struct ForwardedHead: Sendable, Hashable {
    /// The request that is written.
    let request: HTTPRequest
    /// Whether a WebSocket is asked for.
    let isUpgrade: Bool
    /// Whether the owner says first that it takes the body.
    let asksFirst: Bool
    /// Whether the client asked for that too.
    let isExpected: Bool

    /// The methods that are handed on.
    ///
    /// `TRACE` and `CONNECT` are none of them: what follows their heads is not read in one way
    /// everywhere.
    private static let methods: Set<HTTPRequest.Method> = [
        .get, .head, .post, .put, .patch, .delete, .options,
    ]
    /// Those whose request without a length has a body of none, and says so.
    private static let withBody: Set<HTTPRequest.Method> = [.post, .put, .patch]

    /// Why a request is not handed on.
    struct Refusal: Error, Hashable {
        /// The HTTP status.
        let status: Int
        let reason: String
    }

    /// Takes a client's head, which came from `origin`.
    ///
    /// - Throws: ``Refusal`` if it cannot be handed on.
    init(of head: HTTPRequest, from origin: CallOrigin) throws(Refusal) {
        guard Self.methods.contains(head.method) else {
            throw Refusal(
                status: 501,
                reason: "a relay that does not own the store knows GET, HEAD, POST, PUT, PATCH, "
                    + "DELETE and OPTIONS")
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
        // HTTP/1.0 may name no host; what is handed on is HTTP/1.1, where an empty name says that.
        request.authority = request.authority ?? ""
        origin.write(to: &request.headerFields)
        self.request = request
    }

    /// Takes out what is of the client's connection alone (RFC 9110, §7.6.1), also what it names.
    private static func removeWhatIsOfOneConnection(from fields: inout HTTPFields) {
        for name in (fields[.connection] ?? "").split(separator: ",") {
            // How long the body is, is not for the connection to say.
            guard let name = HTTPField.Name(name.trimmed),
                ![.contentLength, .transferEncoding].contains(name)
            else { continue }
            fields[name] = nil
        }
        for name in [HTTPField.Name.keepAlive, .proxyConnection, .connection, .upgrade, .te] {
            fields[name] = nil
        }
    }

    /// Says the length of the body anew, in one form; returns it if it is known.
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
