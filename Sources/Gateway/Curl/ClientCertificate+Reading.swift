import CCurl
import RelayModel

extension GatewayCredential.ClientCertificate {
    /// Why a file is of no use as a client certificate.
    package enum Fault: Error, Sendable, Hashable {
        /// Not a file of its kind, or enciphered in a way that is not known here.
        case unreadable
        /// The passphrase does not open it.
        case wrongPassphrase
        /// It holds no certificate together with its own private key.
        case incomplete
        /// To work out its keys from the passphrase takes too long.
        case tooDear
    }

    /// Reads the file as a connection would, long before there is one, and turns a PKCS#12 file
    /// into PEM.
    ///
    /// Files that keychains wrote for years (RC2, 3DES) are read too, which libcurl alone cannot.
    /// Where libcurl uses another TLS library than OpenSSL the certificate is returned as it is.
    ///
    /// - Throws: what is wrong with the file.
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
