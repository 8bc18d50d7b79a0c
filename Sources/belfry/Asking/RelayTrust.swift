import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import RelayServer

/// How a command knows the relay when it speaks TLS.
///
/// The certificate is for the name by which clients reach the relay, and a command on the same
/// machine reaches it by another: so it asks for the name that the certificate has, at the address
/// that is configured, and verifies all of it. Who has the relay's own certificate needs nobody who
/// vouches for it: the same one, byte for byte, is the relay's, whoever signed it. The handshake
/// proves that the other end has its key.
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
            throw CommandFailure(.configuration, "\(key): \(PEMFailure(path, error))")
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

    /// What clients are configured by, in the order in which they are to be tried.
    ///
    /// One knows the relay's own certificate; one has it verified, as when it was renewed and the
    /// relay still has the old one. The first sends nothing where it finds another certificate.
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
        // It runs when the handshake is done, and before the connection gets a request.
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
        // A relay that is not there shall be said at once.
        configuration.connectionPool.retryConnectionEstablishment = false
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

/// The other end has another certificate than the relay's own.
struct OtherCertificate: Error {}

/// Why a relay was not reached, for people.
struct ReachingFailure: CustomStringConvertible {
    let description: String

    /// - Parameters:
    ///   - error: what went wrong.
    ///   - knowsOwn: whether the file of the relay's own certificate was read, which another may
    ///     have been put into.
    init(_ error: any Error, knowsOwn: Bool = false) {
        let text = "\(error)"
        let isReplaced = knowsOwn && text.contains(Self.unverified)
        description =
            (Self.meaning(of: text) ?? Self.words(for: error) ?? Self.reasons(of: error))
            + (isReplaced
                ? "; or tls.certificateFile was replaced a moment ago: the relay takes it within "
                    + "five seconds" : "")
    }

    /// What is said of an error that has no words for people.
    private static func words(for error: any Error) -> String? {
        switch error {
        case is HTTPParserError: "it speaks no HTTP there: another program may have the port"
        case is NIOTooManyBytesError: "its answer is longer than any of a relay"
        case let error as HTTPClientError: error.shortDescription.lowercased()
        default: nil
        }
    }

    /// What the system says, each thing once where a name has several addresses.
    private static func reasons(of error: any Error) -> String {
        let errors = (error as? NIOConnectionError)?.connectionErrors.map(\.error) ?? []
        var reasons: [String] = []
        for error in errors.isEmpty ? [error] : errors {
            // BoringSSL says in which line of its sources it found out, NIO in which call.
            let reason = "\(error)".replacing(#/ at \S+:[0-9]+/#, with: "")
                .replacing(#/[^()]*\([^()]*\): ([^()]+)\) \(errno: [0-9]+\)/#) { "\($0.1)" }
            if !reasons.contains(reason) { reasons.append(reason) }
        }
        return reasons.joined(separator: ", ")
    }

    /// What BoringSSL says of a certificate that nobody known vouches for.
    private static let unverified = "CERTIFICATE_VERIFY_FAILED"

    /// What a failure that many meet at first means, and what to do.
    private static func meaning(of text: String) -> String? {
        if text.contains(unverified) {
            return "its certificate is signed by nobody who is known here: name the authority that "
                + "signed it (tls.caFile, BELFRY_TLS_CA_FILE, --ca-file)"
        }
        if text.contains("WRONG_VERSION_NUMBER") {
            return "it speaks no TLS there: its URL begins with http://"
        }
        if text.contains("remoteConnectionClosed") {
            return "it closed the connection without an answer; the URL of one with TLS begins "
                + "with https://"
        }
        if text.contains("connectTimeout") || text.contains("getConnectionFromPoolTimeout") {
            return "it could not be connected to in time"
        }
        let late = ["deadlineExceeded", "readTimeout", "writeTimeout", "HandshakeTimeout"]
        if late.contains(where: { text.contains($0) }) {
            return "it did not answer in time"
        }
        if text.contains("UnknownHost") { return "nobody knows the name of its host" }
        return nil
    }
}
