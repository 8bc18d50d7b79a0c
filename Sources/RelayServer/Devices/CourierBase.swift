import RelayModel

/// What the URL of a courier begins with.
///
/// A client polls that URL with a secret in it, so that the name in it must be the relay's own. The
/// name that a request asks for is written by whoever makes it: it is followed only where it cannot
/// lead elsewhere.
struct CourierBase: Sendable {
    /// `http.publicURL`; `nil` if nobody said.
    let configured: String?
    /// The listener's own address, for a client whose name for us is not believed.
    let own: PublicURL
    /// The scheme of the listener.
    let scheme: String

    /// The beginning of a courier's URL, without a slash at the end, for a client that asked for
    /// `authority` and reached us at `reached`, perhaps through a proxy that is believed.
    func url(
        authority: String?, reached: ClientAddress?, forwardedScheme: String?
    ) -> String {
        if let configured { return configured }
        guard let authority, Self.leadsHere(authority, reached: reached) else { return "\(own)" }
        let isScheme = forwardedScheme == "https" || forwardedScheme == "http"
        return "\(isScheme ? forwardedScheme ?? scheme : scheme)://\(authority)"
    }

    /// Whether a host names the machine that the client is on, or the very address at which it
    /// reached us; any port is possible, because ports are forwarded.
    static func leadsHere(_ authority: String, reached: ClientAddress?) -> Bool {
        guard authority.utf8.count <= 255,
            let match = authority.wholeMatch(
                of: /(?<host>\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z.\-]+)(?::(?<port>[0-9]{1,5}))?/),
            match.port.map({ UInt16($0) != nil }) ?? true
        else { return false }
        if match.host.lowercased() == "localhost" { return true }
        guard let address = ClientAddress(text: match.host) else { return false }
        return address.isLoopback || address == reached
    }
}
