import NIOHTTP1
import RelayModel

extension HTTPRequestHead {
    /// Why a head must not get further than its connection.
    var fault: String? {
        // A proxy that goes by one and a relay that goes by the other would each mean another
        // request (RFC 9112, §3.2).
        let hosts = headers["host"].count
        if hosts > 1 { return "Host: it is there twice" }
        if hosts == 0, !version.isOld { return "Host: it is missing" }
        // Whoever looks for a word in a field compares texts, which takes the square of such a run:
        // seconds for each of them, on this loop. A target with marks is none to the decoder.
        let field = headers.first(where: { $0.value.hasEndlessMarks })
        return field.map { "\($0.name.shortened): it has too many combining marks in a row" }
    }

    /// Whether the decoder reads nothing more after the request, because its client offers another
    /// protocol: Java's client does with each request that is not over TLS.
    ///
    /// What is not taken is answered as ever (RFC 9110, §7.8), on a connection that then ends.
    var endsReading: Bool {
        method == .CONNECT
            || headers.contains(name: "upgrade")
                && headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
    }
}

extension HTTPVersion {
    /// Whether it is from before HTTP/1.1.
    var isOld: Bool { (major, minor) < (1, 1) }
}
