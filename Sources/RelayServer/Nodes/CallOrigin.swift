import HTTPTypes
import HummingbirdCore

/// From where a call came to the relay that hands it on: what the owner must know of its client.
///
/// It stands in header fields, which are believed of relays that have shown the owner's pass, and
/// taken out of everybody else's requests.
struct CallOrigin: Sendable, Hashable {
    /// The listener by which it came in.
    let listener: String
    /// The client's address, or a proxy's before it.
    let peer: ClientAddress?
    /// The address that it reached.
    let own: ClientAddress?

    /// The listener of a relay with two by which a call would have come that came to `listener`
    /// here, where all may come to one: the owner may have other listeners than this relay.
    static func listener(
        of head: HTTPRequest, at listener: String, isOperators: Bool
    ) -> String {
        guard isOperators else { return listener }
        let first = URI(head.path ?? "").path.split(separator: "/").first
        return first == "admin" || first == "console" ? "admin" : listener
    }

    init(listener: String, peer: ClientAddress?, own: ClientAddress?) {
        self.listener = listener
        self.peer = peer
        self.own = own
    }

    /// Takes what a relay said out of the fields of a request.
    init(takenFrom fields: inout HTTPFields) {
        self.init(
            listener: fields[.nodeListener] ?? "",
            peer: fields[.nodePeer].flatMap { ClientAddress(text: $0) },
            own: fields[.nodeReached].flatMap { ClientAddress(text: $0) })
        Self.remove(from: &fields)
    }

    /// Says it in the fields of a request.
    func write(to fields: inout HTTPFields) {
        Self.remove(from: &fields)
        fields[.nodeListener] = listener
        fields[.nodePeer] = peer?.description
        fields[.nodeReached] = own?.description
    }

    /// Takes out what only relays may say.
    private static func remove(from fields: inout HTTPFields) {
        for name in [HTTPField.Name.nodeListener, .nodePeer, .nodeReached] { fields[name] = nil }
    }
}

extension HTTPField.Name {
    /// The listener by which a forwarded call came in.
    static let nodeListener = unchecked("Belfry-Node-Listener")
    /// Who is at the other end of its connection.
    static let nodePeer = unchecked("Belfry-Node-Peer")
    /// Which address that one reached.
    static let nodeReached = unchecked("Belfry-Node-Reached")
    /// Says that the relay asked does not own the store, and has done nothing.
    static let nodeDeclined = unchecked("Belfry-Node-Declined")
    /// What is of one connection alone (RFC 9110, §7.6.1).
    static let keepAlive = unchecked("Keep-Alive")
    static let proxyConnection = unchecked("Proxy-Connection")
}
