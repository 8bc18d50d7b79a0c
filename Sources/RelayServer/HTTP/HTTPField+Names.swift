import HTTPTypes

extension HTTPField.Name {
    /// Names the request, as CloudKit's answers do.
    static let appleRequestUUID = unchecked("X-Apple-Request-UUID")
    /// The user's token for the next request.
    static let webAuthToken = unchecked("X-Apple-CloudKit-Web-Auth-Token")

    /// Whom a proxy acts for.
    static let forwardedFor = unchecked("X-Forwarded-For")

    /// Who asks whether it may send events here (CloudEvents, HTTP 1.1 Web Hooks §4.1.1).
    static let webHookRequestOrigin = unchecked("WebHook-Request-Origin")
    /// Who may.
    static let webHookAllowedOrigin = unchecked("WebHook-Allowed-Origin")
    /// How many requests a minute it may send.
    static let webHookAllowedRate = unchecked("WebHook-Allowed-Rate")

    /// Whether a proxy may hold an answer back until it is whole (nginx).
    static let acceleratorBuffering = unchecked("X-Accel-Buffering")
    /// What a WebSocket's handshake is proven with (RFC 6455, §11.3).
    static let secWebSocketKey = unchecked("Sec-WebSocket-Key")
    /// The proof.
    static let secWebSocketAccept = unchecked("Sec-WebSocket-Accept")
    /// What is spoken over a WebSocket.
    static let secWebSocketProtocol = unchecked("Sec-WebSocket-Protocol")
    /// The version of WebSockets.
    static let secWebSocketVersion = unchecked("Sec-WebSocket-Version")

    /// What a page tells others of where it came from (W3C, Referrer Policy).
    static let referrerPolicy = unchecked("Referrer-Policy")

    /// The same in the clients of January 2016.
    static let session = unchecked("X-Apple-CloudKit-Session")

    /// A name that is known to be one.
    static func unchecked(_ name: String) -> HTTPField.Name {
        guard let field = HTTPField.Name(name) else {
            preconditionFailure("\(name) is not the name of a header field")
        }
        return field
    }
}
