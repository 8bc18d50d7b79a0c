import Crypto
import FoundationEssentials
import NIOSSL
import SwiftASN1
import X509

/// The certificate with its private key by which the relays of one store authenticate each other.
///
/// Each relay makes its own when it starts. While it owns the store, its pass is stored with the
/// lease. A relay that can read it there shows it to the owner, and recognises the owner by it. So
/// forwarded calls are encrypted and come from a relay of the same store, whatever certificates the
/// clients' listeners have.
struct NodePass: Sendable {
    /// The certificate and the key in PEM format; a secret.
    let text: String
    private let certificate: NIOSSLCertificate
    private let privateKey: NIOSSLPrivateKey

    /// The maximum size of another relay's text, in bytes.
    private static let maximumBytes = 8192
    /// The validity of a pass, which ends with its process and needs no clock.
    ///
    /// It is from 1970 to the year 9999 (RFC 5280, §4.1.2.5).
    private static let validity =
        Date(timeIntervalSince1970: 0)...Date(timeIntervalSince1970: 253_402_300_799)

    /// A pass could not be made or read.
    struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    /// Makes a pass; `randomBytes` must return unpredictable bytes.
    init(drawnFrom randomBytes: (Int) -> [UInt8]) throws {
        let key = try P256.Signing.PrivateKey(rawRepresentation: randomBytes(32))
        let name = try DistinguishedName { CommonName("Belfry relay") }
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(bytes: randomBytes(16)),
            publicKey: .init(key.publicKey), notValidBefore: Self.validity.lowerBound,
            notValidAfter: Self.validity.upperBound, issuer: name, subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
            }, issuerPrivateKey: .init(key))
        try self.init(
            text: try certificate.serializeAsPEM().pemString + "\n" + key.pemRepresentation + "\n")
    }

    /// Parses a pass.
    ///
    /// - Throws: ``Unusable``, whose description contains nothing of the text.
    init(text: String) throws(Unusable) {
        guard text.utf8.count <= Self.maximumBytes else {
            throw Unusable(description: "the certificate of a relay is too long")
        }
        do {
            let certificates = try NIOSSLCertificate.fromPEMBytes(Array(text.utf8))
            guard certificates.count == 1 else {
                throw Unusable(description: "the certificate of a relay is not a single one")
            }
            certificate = certificates[0]
            privateKey = try NIOSSLPrivateKey(bytes: Array(text.utf8), format: .pem)
        } catch let unusable as Unusable {
            throw unusable
        } catch {
            throw Unusable(description: "the certificate of a relay, or its key, cannot be read")
        }
        self.text = text
    }

    /// The TLS settings of a listener that accepts only clients with this pass.
    var listening: TLSConfiguration {
        var settings = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(certificate)], privateKey: .privateKey(privateKey))
        settings.minimumTLSVersion = .tlsv13
        settings.trustRoots = .certificates([certificate])
        settings.certificateVerification = .noHostnameVerification
        return settings
    }

    /// Creates the TLS context of a client that shows this pass, and accepts only a server that has
    /// it too.
    ///
    /// Names are not verified, because no other process has the key.
    func asking() throws -> NIOSSLContext {
        var settings = TLSConfiguration.makeClientConfiguration()
        settings.minimumTLSVersion = .tlsv13
        settings.trustRoots = .certificates([certificate])
        settings.certificateVerification = .noHostnameVerification
        settings.certificateChain = [.certificate(certificate)]
        settings.privateKey = .privateKey(privateKey)
        return try NIOSSLContext(configuration: settings)
    }
}
