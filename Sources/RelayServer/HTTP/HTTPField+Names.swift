import HTTPTypes

extension HTTPField.Name {
    /// The ID of a request, which CloudKit's answers have too.
    static let appleRequestUUID = unchecked("X-Apple-Request-UUID")
    /// The user's token for the next request.
    static let webAuthToken = unchecked("X-Apple-CloudKit-Web-Auth-Token")

    /// The address of the client for which a proxy forwards a request.
    static let forwardedFor = unchecked("X-Forwarded-For")

    /// The origin that asks whether it may send events here (CloudEvents, HTTP 1.1 Web Hooks
    /// §4.1.1).
    static let webHookRequestOrigin = unchecked("WebHook-Request-Origin")
    /// The origin that may send events.
    static let webHookAllowedOrigin = unchecked("WebHook-Allowed-Origin")
    /// The number of requests a minute that it may send.
    static let webHookAllowedRate = unchecked("WebHook-Allowed-Rate")

    /// Whether a proxy may hold an answer back until it is whole (nginx).
    static let acceleratorBuffering = unchecked("X-Accel-Buffering")
    /// The random key of a WebSocket's handshake (RFC 6455, §11.3).
    static let secWebSocketKey = unchecked("Sec-WebSocket-Key")
    /// The proof that the server has read the key.
    static let secWebSocketAccept = unchecked("Sec-WebSocket-Accept")
    /// The subprotocol of a WebSocket.
    static let secWebSocketProtocol = unchecked("Sec-WebSocket-Protocol")
    /// The version of the WebSocket protocol.
    static let secWebSocketVersion = unchecked("Sec-WebSocket-Version")

    /// What a page tells other servers about its own address (W3C, Referrer Policy).
    static let referrerPolicy = unchecked("Referrer-Policy")

    /// The name of the user's token in the clients of January 2016.
    static let session = unchecked("X-Apple-CloudKit-Session")

    /// Returns a field name from a text that is known to be a valid one.
    static func unchecked(_ name: String) -> HTTPField.Name {
        guard let field = HTTPField.Name(name) else {
            preconditionFailure("\(name) is not the name of a header field")
        }
        return field
    }
}
