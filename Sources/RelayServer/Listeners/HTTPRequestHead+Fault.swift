import NIOHTTP1
import RelayModel

extension HTTPRequestHead {
    /// Why the request must be refused before any handler sees it; `nil` if it need not be.
    var fault: String? {
        // A proxy that uses one host field and a relay that uses the other would each see another
        // request (RFC 9112, §3.2).
        let hosts = headers["host"]
        if hosts.count > 1 { return "Host: it is given twice" }
        if hosts.isEmpty, !version.isOld { return "Host: it is missing" }
        let target = targetAuthority
        if let target, !HostField.isValid(target) { return "the target's host: \(HostField.rule)" }
        if let host = hosts.first.map({ Substring($0).trimmed }) {
            // An empty field says that the target has no host.
            if host.isEmpty, target != nil { return "Host: it is empty, but the target has one" }
            if !host.isEmpty, !HostField.isValid(host) { return "Host: \(HostField.rule)" }
        }
        // Comparing texts takes the square of the length of such a run: seconds for each field, on
        // this event loop. The decoder refuses a target with marks.
        let field = headers.first(where: { $0.value.hasEndlessMarks })
        return field.map { "\($0.name.shortened): it has too many combining marks in a row" }
    }

    /// The authority of a target in absolute form, such as `http://relay/healthz`; `nil` for any
    /// other target.
    private var targetAuthority: Substring? {
        let bytes = uri.utf8
        guard bytes.first != UInt8(ascii: "/"), let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        let rest = bytes[colon...]
        guard rest.starts(with: "://".utf8) else { return nil }
        let authority = rest.dropFirst(3).prefix { byte in
            byte != UInt8(ascii: "/") && byte != UInt8(ascii: "?") && byte != UInt8(ascii: "#")
        }
        return Substring(authority)
    }

    /// Takes the host from a target in absolute form, whatever the field `Host` says (RFC 9112,
    /// §3.2.2).
    mutating func takeHostOfTarget() {
        guard let target = targetAuthority else { return }
        headers.replaceOrAdd(name: "host", value: String(target))
    }

    /// Whether the decoder stops after the request, because it offers another protocol.
    ///
    /// Java's client offers one with each request that is not over TLS. It is answered as usual if
    /// the offer is not accepted (RFC 9110, §7.8), and the connection ends then.
    var endsReading: Bool {
        method == .CONNECT
            || headers.contains(name: "upgrade")
                && headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
    }
}

extension HTTPVersion {
    /// Whether the version is older than HTTP/1.1.
    var isOld: Bool { (major, minor) < (1, 1) }
}
