import Crypto
import Gateway
import RelayModel
import Testing

/// A client certificate is opened when it is saved.
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
    func `a PKCS#12 file becomes PEM, also with old ciphers`(file: String) throws {
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
    func `a wrong passphrase is distinguished from an unreadable file`(file: String) {
        for passphrase in ["open barley", ""] {
            #expect(throws: Certificate.Fault.wrongPassphrase) {
                try packed(file, passphrase).unpacked()
            }
        }
        let half = Base64.encode(Array((Base64.decode(file) ?? []).prefix(500)))
        #expect(throws: Certificate.Fault.unreadable) { try packed(half).unpacked() }
    }

    // The sender of a file chooses its number of rounds. Two thousand million rounds in a PKCS#12
    // file kept a thread of the relay busy for five minutes, and those in a PEM text were run
    // again for each connection.
    @Test func `a file that takes too long to open is refused before it is opened`() throws {
        #expect(throws: Certificate.Fault.tooDear) {
            try packed(ClientCertificateSample.dearPKCS12).unpacked()
        }
        let alone = try #require(
            ClientCertificateSample.pem.split(separator: "-----BEGIN PRIVATE KEY").first)
        // An unreadable key before it must not hide the expensive key.
        for before in ["", "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----\n"] {
            let text = "\(before)\(alone)\(ClientCertificateSample.dearKey)\n"
            let certificate = Certificate(
                packing: .pem, bytes: Array(text.utf8),
                passphrase: ConcealedText(ClientCertificateSample.passphrase))
            #expect(throws: Certificate.Fault.tooDear) { try certificate.unpacked() }
        }
        // The last number in the file is the number of rounds of its check. The two lengths that
        // are raised are those of the whole file and of the part with that number.
        var bytes = try #require(Base64.decode(ClientCertificateSample.pkcs12))
        let part = bytes.count - 67
        bytes.replaceSubrange((bytes.count - 4)..., with: [2, 4, 0x7F, 0xFF, 0xFF, 0xFF])
        bytes[3] += 2
        bytes[part + 1] += 2
        #expect(throws: Certificate.Fault.tooDear) {
            try packed(Base64.encode(bytes)).unpacked()
        }
    }

    @Test func `a certificate without its own key is refused`() throws {
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
    func `a text that is not such a file is unreadable`(text: String) {
        #expect(throws: Certificate.Fault.unreadable) { try packed(text).unpacked() }
        #expect(throws: Certificate.Fault.unreadable) {
            try Certificate(packing: .pem, bytes: Array(text.utf8)).unpacked()
        }
    }
}
