import NIOSSL

/// How a command knows the relay when it speaks TLS.
///
/// The certificate is for the name by which clients reach the relay, and a command on the same
/// machine reaches it by another: so it asks for the name that the certificate has, at the address
/// that is configured, and verifies all of it.
struct RelayTrust {
    private var roots: [NIOSSLCertificate] = []
    private var own: NIOSSLCertificate?
    /// Where names are to be found instead of where they lead.
    private(set) var places: [String: String] = [:]

    /// Trusts the certificates of a file, of which the first is the relay's own if it is its chain.
    ///
    /// - Throws: ``CommandFailure`` if it cannot be read.
    mutating func add(_ key: String, _ path: String) throws {
        do {
            let chain = try NIOSSLCertificate.fromPEMFile(path)
            if key == "tls.certificateFile" { own = chain.first }
            roots += chain
        } catch {
            throw CommandFailure(
                .configuration, "\(key): the file \(path) cannot be read as PEM: \(error)")
        }
    }

    /// The URL of the listener at `host`, without a slash at the end.
    mutating func place(of host: String, port: Int, isTLS: Bool) -> String {
        let reached =
            switch host {
            case "0.0.0.0": "127.0.0.1"
            case "::": "::1"
            default: host
            }
        let written = reached.contains(":") ? "[\(reached)]" : reached
        guard isTLS else { return "http://\(written):\(port)" }
        let names = own.map(Self.names) ?? []
        guard let name = names.first(where: { $0 == reached }) ?? names.first, name != reached
        else { return "https://\(written):\(port)" }
        places[name] = reached
        return "https://\(name):\(port)"
    }

    /// What the relay's certificate is verified by.
    var configuration: TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if !roots.isEmpty { configuration.additionalTrustRoots = [.certificates(roots)] }
        return configuration
    }

    /// The names of a certificate; of a wildcard, one of the names that it stands for.
    private static func names(_ certificate: NIOSSLCertificate) -> [String] {
        certificate._subjectAlternativeNames().compactMap { name in
            guard name.nameType == .dnsName else { return nil }
            let text = String(decoding: name.contents, as: UTF8.self)
            return text.hasPrefix("*.") ? "relay" + text.dropFirst() : text
        }
    }
}
