import Crypto
import SwiftASN1
import X509

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The certificate authority of one simulated gateway, and the server certificate that it issued.
///
/// The authority's private key is discarded as soon as it has signed.
struct CertificateAuthority: Sendable {
    /// The authority's certificate as PEM.
    var caCertificatePEM: String
    /// The server's certificate as PEM.
    var serverCertificatePEM: String
    /// The server's private key as PEM.
    var serverKeyPEM: String

    /// Creates an authority and a certificate for `localhost`, `127.0.0.1`, `::1` and `host`.
    ///
    /// Both are valid from an hour before `now`, because senders' clocks differ, to `lifetime`
    /// after it, which is at least an hour.
    init(host: String, now: Date, lifetime: Duration) throws {
        let validity =
            now.addingTimeInterval(
                -3600)...now.addingTimeInterval(
                TimeInterval(max(3600, lifetime.components.seconds)))
        let caKey = P256.Signing.PrivateKey()
        let caName = try DistinguishedName { CommonName("Belfry simulated gateway CA") }
        let caCertificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(caKey.publicKey),
            notValidBefore: validity.lowerBound, notValidAfter: validity.upperBound,
            issuer: caName, subject: caName, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Self.authorityExtensions(of: caKey.publicKey),
            issuerPrivateKey: .init(caKey))
        let serverKey = P256.Signing.PrivateKey()
        let serverCertificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(serverKey.publicKey),
            notValidBefore: validity.lowerBound, notValidAfter: validity.upperBound,
            issuer: caName, subject: try DistinguishedName { CommonName("localhost") },
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Self.serverExtensions(
                of: serverKey.publicKey, issuer: caKey.publicKey, host: host),
            issuerPrivateKey: .init(caKey))
        caCertificatePEM = try caCertificate.serializeAsPEM().pemString + "\n"
        serverCertificatePEM = try serverCertificate.serializeAsPEM().pemString + "\n"
        serverKeyPEM = serverKey.pemRepresentation + "\n"
    }

    private static func authorityExtensions(
        of key: P256.Signing.PublicKey
    ) throws -> Certificate.Extensions {
        try Certificate.Extensions {
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
            Critical(KeyUsage(keyCertSign: true, cRLSign: true))
            SubjectKeyIdentifier(hash: .init(key))
        }
    }

    private static func serverExtensions(
        of key: P256.Signing.PublicKey, issuer: P256.Signing.PublicKey, host: String
    ) throws -> Certificate.Extensions {
        try Certificate.Extensions {
            Critical(BasicConstraints.notCertificateAuthority)
            Critical(KeyUsage(digitalSignature: true))
            try ExtendedKeyUsage([.serverAuth])
            SubjectAlternativeNames(alternativeNames(host: host))
            SubjectKeyIdentifier(hash: .init(key))
            AuthorityKeyIdentifier(
                keyIdentifier: SubjectKeyIdentifier(hash: .init(issuer)).keyIdentifier)
        }
    }

    static func alternativeNames(host: String) -> [GeneralName] {
        let loopback4: [UInt8] = [127, 0, 0, 1]
        let loopback6 = [UInt8](repeating: 0, count: 15) + [1]
        var names: [GeneralName] = [
            .dnsName("localhost"),
            .ipAddress(ASN1OctetString(contentBytes: loopback4[...])),
            .ipAddress(ASN1OctetString(contentBytes: loopback6[...])),
        ]
        let octets = host.split(separator: ".").map { UInt8($0) }
        if octets.count == 4, !octets.contains(nil), octets != loopback4 {
            names.append(.ipAddress(ASN1OctetString(contentBytes: octets.compactMap(\.self)[...])))
        } else if !["localhost", "::1", "::", "0.0.0.0", "127.0.0.1"].contains(host) {
            names.append(.dnsName(host))
        }
        return names
    }
}
