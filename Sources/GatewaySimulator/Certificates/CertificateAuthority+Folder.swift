import Crypto
import SwiftASN1
import X509

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension CertificateAuthority {
    /// The minimum remaining validity of stored certificates; with less, new ones are made.
    private static let minimumRemainder: TimeInterval = 86_400

    /// Loads the certificates from `source` if they are still usable, or else makes new ones.
    ///
    /// - Throws: An error of the file system if the folder or a file cannot be written.
    static func load(
        from source: CertificateSource, host: String, now: Date, lifetime: Duration
    ) throws -> CertificateAuthority {
        guard case .kept(let path) = source else {
            return try CertificateAuthority(host: host, now: now, lifetime: lifetime)
        }
        let folder = URL(fileURLWithPath: path, isDirectory: true)
        if let kept = try? CertificateAuthority(keptIn: folder), kept.isValid(for: host, at: now) {
            return kept
        }
        let made = try CertificateAuthority(host: host, now: now, lifetime: lifetime)
        try made.keep(in: folder)
        return made
    }

    /// Writes the authority's certificate to `path`, for senders to trust.
    func writeCA(to path: String) throws {
        let file = URL(fileURLWithPath: path)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(caCertificatePEM.utf8).write(to: file, options: .atomic)
    }

    private init(keptIn folder: URL) throws {
        caCertificatePEM = try Self.read("ca.pem", in: folder)
        serverCertificatePEM = try Self.read("server.pem", in: folder)
        serverKeyPEM = try Self.read("server-key.pem", in: folder)
    }

    private static func read(_ name: String, in folder: URL) throws -> String {
        try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
    }

    private func isValid(for host: String, at now: Date) -> Bool {
        guard let authority = try? Certificate(pemEncoded: caCertificatePEM),
            let server = try? Certificate(pemEncoded: serverCertificatePEM),
            let key = try? P256.Signing.PrivateKey(pemRepresentation: serverKeyPEM),
            server.publicKey == Certificate.PublicKey(key.publicKey),
            authority.publicKey.isValidSignature(server.signature, for: server),
            let names = try? server.extensions.subjectAlternativeNames
        else { return false }
        let isForHost = Set(names).isSuperset(of: Self.alternativeNames(host: host))
        return isForHost && server.notValidBefore <= now
            && now.addingTimeInterval(Self.minimumRemainder) < server.notValidAfter
    }

    private func keep(in folder: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let key = folder.appendingPathComponent("server-key.pem")
        try? FileManager.default.removeItem(at: key)
        let wasCreated = FileManager.default.createFile(
            atPath: key.path, contents: Data(serverKeyPEM.utf8),
            attributes: [.posixPermissions: 0o600])
        guard wasCreated else { throw CocoaError(.fileWriteUnknown) }
        for (name, text) in [("ca.pem", caCertificatePEM), ("server.pem", serverCertificatePEM)] {
            try Data(text.utf8).write(
                to: folder.appendingPathComponent(name), options: .atomic)
        }
    }
}
