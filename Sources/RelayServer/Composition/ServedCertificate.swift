import FoundationEssentials
import Glibc
import Logging
import NIOCore
import NIOSSL
import RelayModel
import Synchronization

/// The certificate of the listeners, which is read again when its files change.
///
/// A handshake uses the certificate that was read last; open connections keep theirs. Files that
/// cannot be used together are logged once, and the former certificate stays in use.
///
/// Concurrency: a lock around short sections; the files are read outside of it.
final class ServedCertificate: Sendable {
    private struct State {
        var override: NIOSSLContextConfigurationOverride
        /// The marks of the files when they were last read, whether they were usable or not.
        var read: Marks
    }

    /// The attributes of both files by which a change is noticed: a new modification, or another
    /// file under the same name.
    private struct Marks: Equatable {
        let certificate: Mark?
        let privateKey: Mark?
    }

    private struct Mark: Equatable {
        let seconds: Int
        let nanoseconds: Int
        let size: Int64
        let file: UInt64

        /// Reads the attributes of a file; `nil` if there is none.
        init?(_ path: String) {
            var answer = stat()
            guard unsafe stat(path, &answer) == 0 else { return nil }
            seconds = answer.st_mtim.tv_sec
            nanoseconds = answer.st_mtim.tv_nsec
            size = Int64(answer.st_size)
            file = UInt64(answer.st_ino)
        }
    }

    private let files: RelayConfiguration.TLSFiles
    private let logger: Logger
    private let state: Mutex<State>
    /// The configuration with which the listeners are created; each later handshake asks for the
    /// current certificate.
    let beginning: TLSConfiguration

    /// Reads the files.
    ///
    /// - Throws: ``ConfigurationError`` that names the file that cannot be used.
    init(_ files: RelayConfiguration.TLSFiles, logger: Logger) throws(ConfigurationError) {
        self.files = files
        self.logger = logger
        let marks = Self.marks(of: files)
        let (configuration, override) = try Self.read(files)
        beginning = configuration
        state = Mutex(State(override: override, read: marks))
    }

    /// The TLS configuration of a listener.
    var configuration: TLSConfiguration {
        var configuration = beginning
        configuration.sslContextCallback = { [self] _, promise in
            promise.succeed(state.withLock { $0.override })
        }
        return configuration
    }

    /// The certificate chain that new handshakes get.
    var chain: [NIOSSLCertificateSource] { state.withLock { $0.override.certificateChain ?? [] } }

    /// The earliest expiry in the chain; clients refuse the chain from then on.
    var expiry: Timestamp? {
        let ends = chain.compactMap { source -> Int64? in
            guard case .certificate(let certificate) = source else { return nil }
            return Int64(certificate.notValidAfter)
        }
        return ends.min().map { Timestamp(seconds: $0) }
    }

    /// Reads the files again; returns whether they had changed.
    ///
    /// - Throws: ``ConfigurationError`` if they cannot be used; then the former certificate stays
    ///   in use.
    @discardableResult
    func renew() throws(ConfigurationError) -> Bool {
        let marks = Self.marks(of: files)
        let isNew = state.withLock { state in
            defer { state.read = marks }
            return state.read != marks
        }
        let (_, override) = try Self.read(files)
        state.withLock { $0.override = override }
        return isNew
    }

    /// Checks every 5 seconds whether the files have changed, until the task is cancelled.
    func watch(by clock: any Clock<Duration>) async throws {
        while true {
            try await clock.sleep(for: .seconds(5))
            look()
        }
    }

    /// Reads the files if they have changed, and logs the result.
    ///
    /// The two files are never replaced at the same moment. So if they do not match, the next
    /// change of either is tried again.
    func look() {
        guard state.withLock({ $0.read }) != Self.marks(of: files) else { return }
        do {
            _ = try renew()
            logger.notice("the certificate was renewed", metadata: ["file": "\(files.certificate)"])
        } catch {
            logger.error(
                "a new certificate cannot be used; the old one stays in use",
                metadata: ["reason": "\(error.problems.joined(separator: "; "))"])
        }
    }

    private static func marks(of files: RelayConfiguration.TLSFiles) -> Marks {
        Marks(certificate: Mark(files.certificate), privateKey: Mark(files.privateKey))
    }

    private static func read(
        _ files: RelayConfiguration.TLSFiles
    ) throws(ConfigurationError) -> (TLSConfiguration, NIOSSLContextConfigurationOverride) {
        let chain = try contents("tls.certificateFile", files.certificate) {
            try NIOSSLCertificate.fromPEMFile($0)
        }
        let key = try contents("tls.privateKeyFile", files.privateKey) {
            try NIOSSLPrivateKey(file: $0, format: .pem)
        }
        var override = NIOSSLContextConfigurationOverride()
        override.certificateChain = chain.map { .certificate($0) }
        override.privateKey = .privateKey(key)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        do {
            // This detects a key that does not belong to the certificate before a client's
            // handshake fails.
            _ = try NIOSSLContext(configuration: configuration)
        } catch NIOSSLError.failedToLoadCertificate {
            throw ConfigurationError([
                "tls.certificateFile: TLS does not support the kind of certificate in "
                    + files.certificate
            ])
        } catch {
            throw ConfigurationError([
                "tls.privateKeyFile: \(files.privateKey) does not match the certificate in "
                    + files.certificate
            ])
        }
        return (configuration, override)
    }

    private static func contents<Contents>(
        _ key: String, _ path: String, _ body: (String) throws -> Contents
    ) throws(ConfigurationError) -> Contents {
        do {
            return try body(path)
        } catch {
            throw ConfigurationError(["\(key): \(PEMFailure(path, error))"])
        }
    }
}
