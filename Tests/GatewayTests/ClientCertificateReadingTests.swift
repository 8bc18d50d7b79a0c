import Crypto
import Gateway
import RelayModel
import Testing

/// Client certificates are opened when they are saved.
@Suite struct ClientCertificateReadingTests {
    typealias Certificate = GatewayCredential.ClientCertificate

    private func packed(
        _ text: String, _ passphrase: String = ClientCertificateSample.passphrase
    ) -> Certificate {
        Certificate(
            packing: .pkcs12, bytes: Base64.decode(text) ?? [],
            passphrase: ConcealedText(passphrase))
    }

    @Test(arguments: [ClientCertificateSample.pkcs12, ClientCertificateSample.oldPKCS12])
    func `a PKCS#12 file becomes PEM, also with the ciphers of old`(file: String) throws {
        let certificate = try packed(file).unpacked()
        let bytes = try #require(Base64.decode(certificate.bytes.revealed))
        #expect(certificate.packing == .pem)
        #expect(certificate.passphrase.revealed.isEmpty)
        #expect(String(decoding: bytes, as: UTF8.self) == ClientCertificateSample.pem + "\n")
    }

    @Test func `a PEM text stays as it is`() throws {
        let certificate = Certificate(
            packing: .pem, bytes: Array(ClientCertificateSample.pem.utf8))
        #expect(try certificate.unpacked() == certificate)
    }

    @Test(arguments: [ClientCertificateSample.pkcs12, ClientCertificateSample.oldPKCS12])
    func `a wrong passphrase is told from a file that cannot be read`(file: String) {
        for passphrase in ["open barley", ""] {
            #expect(throws: Certificate.Fault.wrongPassphrase) {
                try packed(file, passphrase).unpacked()
            }
        }
        let half = Base64.encode(Array((Base64.decode(file) ?? []).prefix(500)))
        #expect(throws: Certificate.Fault.unreadable) { try packed(half).unpacked() }
    }

    @Test func `a certificate needs its own key beside it`() throws {
        #expect(throws: Certificate.Fault.incomplete) {
            try packed(ClientCertificateSample.certificateAlone).unpacked()
        }
        let alone = try #require(
            ClientCertificateSample.pem.split(separator: "-----BEGIN PRIVATE KEY").first)
        let strange = "\(alone)\(P256.Signing.PrivateKey().pemRepresentation)"
        #expect(throws: Certificate.Fault.incomplete) {
            try Certificate(packing: .pem, bytes: Array(strange.utf8)).unpacked()
        }
    }

    @Test(arguments: ["", "0", "MIID"])
    func `what is no file of its kind is unreadable`(text: String) {
        #expect(throws: Certificate.Fault.unreadable) { try packed(text).unpacked() }
        #expect(throws: Certificate.Fault.unreadable) {
            try Certificate(packing: .pem, bytes: Array(text.utf8)).unpacked()
        }
    }
}
