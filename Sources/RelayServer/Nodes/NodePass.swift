import Crypto
import FoundationEssentials
import NIOSSL
import SwiftASN1
import X509

/// By what the relays of one store know each other: a certificate with its private key.
///
/// Each relay draws its own at its start. While it owns the store, the pass lies with the lease,
/// and whoever can read it there shows it to the owner, and knows the owner by it. So what is
/// forwarded is encrypted and comes from a relay of the same store, whatever certificates clients
/// are served with.
struct NodePass: Sendable {
    /// The certificate and the key in PEM form; a secret.
    let text: String
    private let certificate: NIOSSLCertificate
    private let privateKey: NIOSSLPrivateKey

    /// How long a text of another relay may be.
    private static let maximumBytes = 8192
    /// A pass ends with its process, and needs no clock: from the beginning of time to the year
    /// 9999 (RFC 5280, §4.1.2.5).
    private static let validity =
        Date(timeIntervalSince1970: 0)...Date(timeIntervalSince1970: 253_402_300_799)

    /// A pass could not be made, or read.
    struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    /// Draws one; `randomBytes` are unpredictable.
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

    /// Reads one.
    ///
    /// - Throws: ``Unusable``; what it says has nothing of the text.
    init(text: String) throws(Unusable) {
        guard text.utf8.count <= Self.maximumBytes else {
            throw Unusable(description: "the pass of a relay is too long")
        }
        do {
            let certificates = try NIOSSLCertificate.fromPEMBytes(Array(text.utf8))
            guard certificates.count == 1 else {
                throw Unusable(description: "the pass of a relay is not one certificate")
            }
            certificate = certificates[0]
            privateKey = try NIOSSLPrivateKey(bytes: Array(text.utf8), format: .pem)
        } catch let unusable as Unusable {
            throw unusable
        } catch {
            throw Unusable(description: "the pass of a relay cannot be read")
        }
        self.text = text
    }

    /// The settings of a listener that lets in whoever shows this pass, and nobody else.
    var listening: TLSConfiguration {
        var settings = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(certificate)], privateKey: .privateKey(privateKey))
        settings.minimumTLSVersion = .tlsv13
        settings.trustRoots = .certificates([certificate])
        settings.certificateVerification = .noHostnameVerification
        return settings
    }

    /// What shows this pass, and asks nobody else than who has it too: names are of no use, since
    /// nobody else has the key.
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
