import CCurl
import RelayModel

extension GatewayCredential.ClientCertificate {
    /// Why a file cannot be used as a client certificate.
    package enum Fault: Error, Sendable, Hashable {
        /// The file is not of its kind, or is encrypted in an unknown way.
        case unreadable
        /// The passphrase is wrong.
        case wrongPassphrase
        /// The file has no certificate with a matching private key.
        case incomplete
        /// Deriving the keys from the passphrase takes too long.
        case tooDear
    }

    /// Reads the file as a connection would, long before there is one, and converts a PKCS#12 file
    /// to PEM.
    ///
    /// It also reads files with the ciphers that keychains used for years (RC2, 3DES), which
    /// libcurl alone cannot. If libcurl uses another TLS library than OpenSSL, the certificate is
    /// returned unchanged.
    ///
    /// - Throws: The fault of the file.
    package func unpacked() throws(Fault) -> GatewayCredential.ClientCertificate {
        let bytes = Base64.decode(self.bytes.revealed) ?? []
        switch packing {
        case .pem:
            let result = ccurl_certificate_check(bytes, bytes.count, passphrase.revealed)
            if let fault = Fault(result) { throw fault }
            return self
        case .pkcs12:
            var text: UnsafeMutablePointer<CChar>?
            var length = 0
            let result = ccurl_certificate_unpack(
                bytes, bytes.count, passphrase.revealed, &text, &length)
            defer { ccurl_certificate_forget(text, length) }
            if let fault = Fault(result) { throw fault }
            guard let text else { return self }
            let pem = UnsafeBufferPointer(start: text, count: length).map(UInt8.init(bitPattern:))
            return GatewayCredential.ClientCertificate(packing: .pem, bytes: pem)
        }
    }
}

extension GatewayCredential.ClientCertificate.Fault {
    init?(_ result: Int32) {
        switch Int(result) {
        case Int(CCURL_CERTIFICATE_GOOD), Int(CCURL_CERTIFICATE_UNCHECKED): return nil
        case Int(CCURL_CERTIFICATE_WRONG_PASSPHRASE): self = .wrongPassphrase
        case Int(CCURL_CERTIFICATE_INCOMPLETE): self = .incomplete
        case Int(CCURL_CERTIFICATE_TOO_DEAR): self = .tooDear
        default: self = .unreadable
        }
    }
}
