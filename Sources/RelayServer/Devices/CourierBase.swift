import RelayModel

/// The beginning of couriers' URLs.
///
/// A client polls such a URL, which contains a secret, so its host must be the relay. The host in a
/// request is written by the client. It is used only if it cannot lead elsewhere.
struct CourierBase: Sendable {
    /// The configured `http.publicURL`; `nil` if it is not set.
    let configured: String?
    /// The listener's own address, for clients whose `Host` is not accepted.
    let own: PublicURL
    /// The scheme of the listener.
    let scheme: String

    /// Returns the beginning of a courier's URL, without a slash at the end.
    ///
    /// The client addressed `authority` and reached this relay at `reached`, perhaps through a
    /// trusted proxy.
    func url(
        authority: String?, reached: ClientAddress?, forwardedScheme: String?
    ) -> String {
        if let configured { return configured }
        guard let authority, Self.leadsHere(authority, reached: reached) else { return "\(own)" }
        let isScheme = forwardedScheme == "https" || forwardedScheme == "http"
        return "\(isScheme ? forwardedScheme ?? scheme : scheme)://\(authority)"
    }

    /// Returns whether a host is the client's own machine, or the very address at which the client
    /// reached this relay.
    ///
    /// Any port is accepted, because ports are forwarded.
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
