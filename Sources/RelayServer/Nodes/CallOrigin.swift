import HTTPTypes
import HummingbirdCore

/// The origin of a forwarded call: what the owner must know about the client.
///
/// It is sent in header fields. They are accepted only from relays that have shown the owner's
/// pass, and removed from all other requests.
struct CallOrigin: Sendable, Hashable {
    /// The listener on which the call arrived.
    let listener: String
    /// The address of the client, or of the proxy before it.
    let peer: ClientAddress?
    /// The address of this relay that it reached.
    let own: ClientAddress?

    /// Returns the listener on which the call would have arrived at a relay with two listeners.
    ///
    /// It matters if one listener serves clients and operators: the owner may have other listeners
    /// than this relay.
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

    /// Takes the origin out of the fields of a request from another relay.
    init(takenFrom fields: inout HTTPFields) {
        self.init(
            listener: fields[.nodeListener] ?? "",
            peer: fields[.nodePeer].flatMap { ClientAddress(text: $0) },
            own: fields[.nodeReached].flatMap { ClientAddress(text: $0) })
        Self.remove(from: &fields)
    }

    /// Writes the origin into the fields of a request.
    func write(to fields: inout HTTPFields) {
        Self.remove(from: &fields)
        fields[.nodeListener] = listener
        fields[.nodePeer] = peer?.description
        fields[.nodeReached] = own?.description
    }

    /// Removes the fields that only relays may send.
    private static func remove(from fields: inout HTTPFields) {
        for name in [HTTPField.Name.nodeListener, .nodePeer, .nodeReached] { fields[name] = nil }
    }
}

extension HTTPField.Name {
    /// The listener on which a forwarded call arrived.
    static let nodeListener = unchecked("Belfry-Node-Listener")
    /// The address at the other end of its connection.
    static let nodePeer = unchecked("Belfry-Node-Peer")
    /// The address of the relay that it reached.
    static let nodeReached = unchecked("Belfry-Node-Reached")
    /// Says that the other relay does not own the store, and has done nothing.
    static let nodeDeclined = unchecked("Belfry-Node-Declined")
    /// A field of a single connection (RFC 9110, §7.6.1).
    static let keepAlive = unchecked("Keep-Alive")
    static let proxyConnection = unchecked("Proxy-Connection")
}
