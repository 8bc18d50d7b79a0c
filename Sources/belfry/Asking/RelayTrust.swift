import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import RelayServer

/// How a command recognises a relay that uses TLS.
///
/// The relay's certificate is for the name that clients use, but a command on the same machine uses
/// another address. So the command requests the certificate's name, connects to the configured
/// address, and verifies the certificate fully. If the command has the relay's own certificate, it
/// needs no authority: the identical certificate, byte for byte, is the relay's, whoever signed it.
/// The handshake proves that the other end has its key.
struct RelayTrust {
    private var roots: [NIOSSLCertificate] = []
    private var own: NIOSSLCertificate?
    /// Addresses to connect to for a host name, instead of those from DNS.
    private(set) var places: [String: String] = [:]

    /// Trusts the certificates in a file.
    ///
    /// In the relay's own chain, the first one is the relay's certificate.
    ///
    /// - Throws: ``CommandFailure`` if the file cannot be read.
    mutating func add(_ key: String, _ path: String) throws {
        do {
            let chain = try NIOSSLCertificate.fromPEMFile(path)
            if key == "tls.certificateFile" { own = chain.first }
            roots += chain
        } catch {
            throw CommandFailure(.configuration, "\(key): \(PEMFailure(path, error))")
        }
    }

    /// Returns the URL of the listener at `host`, without a slash at the end.
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

    /// The configurations of the clients, in the order in which to try them.
    ///
    /// The first one accepts only the relay's own certificate, and sends nothing if it finds
    /// another. The second one verifies the certificate, for a relay that still uses the
    /// certificate before a renewal.
    var configurations: [HTTPClient.Configuration] {
        guard let own else { return [verifying] }
        return [comparing(own), verifying]
    }

    private var verifying: HTTPClient.Configuration {
        var tls = TLSConfiguration.makeClientConfiguration()
        if !roots.isEmpty { tls.additionalTrustRoots = [.certificates(roots)] }
        return configuration(tls)
    }

    private func comparing(_ own: NIOSSLCertificate) -> HTTPClient.Configuration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        var configuration = configuration(tls)
        // Runs after the handshake, before any request is sent on the connection.
        let compare: @Sendable (any Channel) -> EventLoopFuture<Void> = { channel in
            channel.nioSSL_peerCertificate().flatMapThrowing { found in
                guard found == own else { throw OtherCertificate() }
            }
        }
        configuration.http1_1ConnectionDebugInitializer = compare
        configuration.http2ConnectionDebugInitializer = compare
        return configuration
    }

    private func configuration(_ tls: TLSConfiguration) -> HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration()
        configuration.tlsConfiguration = tls
        configuration.dnsOverride = places
        configuration.redirectConfiguration = .disallow
        configuration.timeout.connect = .seconds(5)
        // An absent relay is reported at once, without retries.
        configuration.connectionPool.retryConnectionEstablishment = false
        return configuration
    }

    /// Returns the names in a certificate; for a wildcard, one name that it matches.
    private static func names(_ certificate: NIOSSLCertificate) -> [String] {
        certificate._subjectAlternativeNames().compactMap { name in
            guard name.nameType == .dnsName else { return nil }
            let text = String(decoding: name.contents, as: UTF8.self)
            return text.hasPrefix("*.") ? "relay" + text.dropFirst() : text
        }
    }
}

/// The relay presented another certificate than its own.
struct OtherCertificate: Error {}

/// The reason why a relay was not reached, in readable form.
struct ReachingFailure: CustomStringConvertible {
    let description: String

    /// - Parameters:
    ///   - error: The error.
    ///   - knowsOwn: Whether the file with the relay's own certificate was read, which may since
    ///     have been replaced.
    init(_ error: any Error, knowsOwn: Bool = false) {
        let text = "\(error)"
        let isReplaced = knowsOwn && text.contains(Self.unverified)
        description =
            (Self.meaning(of: text) ?? Self.words(for: error) ?? Self.reasons(of: error))
            + (isReplaced
                ? "; or tls.certificateFile was replaced a moment ago: the relay takes it within "
                    + "five seconds" : "")
    }

    /// Returns a readable text for an error that has none itself.
    private static func words(for error: any Error) -> String? {
        switch error {
        case is HTTPParserError: "it does not speak HTTP: another program may be using the port"
        case is NIOTooManyBytesError: "its answer is longer than a relay's can be"
        case let error as HTTPClientError: error.shortDescription.lowercased()
        default: nil
        }
    }

    /// Returns the system's reasons.
    ///
    /// If a name has several addresses, equal reasons are listed once.
    private static func reasons(of error: any Error) -> String {
        let errors = (error as? NIOConnectionError)?.connectionErrors.map(\.error) ?? []
        var reasons: [String] = []
        for error in errors.isEmpty ? [error] : errors {
            // BoringSSL's text includes its source line, NIO's the name of the call.
            let reason = "\(error)".replacing(#/ at \S+:[0-9]+/#, with: "")
                .replacing(#/[^()]*\([^()]*\): ([^()]+)\) \(errno: [0-9]+\)/#) { "\($0.1)" }
            if !reasons.contains(reason) { reasons.append(reason) }
        }
        return reasons.joined(separator: ", ")
    }

    /// The part of BoringSSL's text about a certificate that no known authority signed.
    private static let unverified = "CERTIFICATE_VERIFY_FAILED"

    /// Returns the meaning of common first-time failures, and what to do.
    private static func meaning(of text: String) -> String? {
        if text.contains(unverified) {
            return "its certificate is signed by an unknown authority: name the authority that "
                + "signed it (tls.caFile, BELFRY_TLS_CA_FILE, --ca-file)"
        }
        if text.contains("WRONG_VERSION_NUMBER") {
            return "it does not speak TLS: use a URL that begins with http://"
        }
        if text.contains("remoteConnectionClosed") {
            return "it closed the connection without an answer; if it speaks TLS, use a URL that "
                + "begins with https://"
        }
        if text.contains("connectTimeout") || text.contains("getConnectionFromPoolTimeout") {
            return "connecting to it took too long"
        }
        let late = ["deadlineExceeded", "readTimeout", "writeTimeout", "HandshakeTimeout"]
        if late.contains(where: { text.contains($0) }) {
            return "it did not answer in time"
        }
        if text.contains("UnknownHost") { return "the name of its host cannot be resolved" }
        return nil
    }
}
