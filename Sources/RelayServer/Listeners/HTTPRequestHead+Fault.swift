import NIOHTTP1
import RelayModel

extension HTTPRequestHead {
    /// Why the request must be refused before any handler sees it; `nil` if it need not be.
    var fault: String? {
        // A proxy that uses one host field and a relay that uses the other would each see another
        // request (RFC 9112, §3.2).
        let hosts = headers["host"].count
        if hosts > 1 { return "Host: it is given twice" }
        if hosts == 0, !version.isOld { return "Host: it is missing" }
        // Comparing texts takes the square of the length of such a run: seconds for each field, on
        // this event loop. The decoder refuses a target with marks.
        let field = headers.first(where: { $0.value.hasEndlessMarks })
        return field.map { "\($0.name.shortened): it has too many combining marks in a row" }
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
