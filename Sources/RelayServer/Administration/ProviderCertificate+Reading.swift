import Gateway
import RelayModel
import Storage

extension ProviderCertificate {
    /// Reads a client certificate: a PEM text with certificates and key, or a PKCS#12 file in
    /// Base64, with the passphrase of the key.
    ///
    /// The certificate is opened here, so that a wrong passphrase is reported now and not at the
    /// first push. A PKCS#12 file is stored as PEM.
    init(_ reader: JSONReader) throws(JSONContractError) {
        try reader.allowOnly(["certificate", "passphrase"])
        let text = try reader.require("certificate", try reader.string("certificate"))
        let given = GatewayCredential.ClientCertificate(
            packing: text.contains("-----BEGIN") ? .pem : .pkcs12,
            bytes: try Self.bytes(of: text, reader),
            passphrase: ConcealedText(try reader.string("passphrase") ?? ""))
        let read: GatewayCredential.ClientCertificate
        do {
            read = try given.unpacked()
        } catch {
            throw reader.failure(
                error == .wrongPassphrase ? "passphrase" : "certificate", Self.words(for: error))
        }
        self.init(
            packing: read.packing == .pem ? .pem : .pkcs12,
            bytes: Base64.decode(read.bytes.revealed) ?? [],
            passphrase: read.passphrase.revealed)
    }

    private static func bytes(
        of text: String, _ reader: JSONReader
    ) throws(JSONContractError) -> [UInt8] {
        if text.contains("-----BEGIN") {
            guard text.contains("-----BEGIN CERTIFICATE-----"), text.contains("PRIVATE KEY-----")
            else {
                throw reader.failure(
                    "certificate", "must contain a certificate and its private key in PEM form")
            }
            return Array(text.utf8)
        }
        // A PKCS#12 file is a DER sequence, which begins with 0x30.
        let packed = Base64.decode(String(text.filter { !$0.isWhitespace }))
        guard let packed, packed.first == 0x30 else {
            throw reader.failure(
                "certificate", "must be PEM, or a PKCS#12 file (.p12) in Base64")
        }
        return packed
    }

    private static func words(for fault: GatewayCredential.ClientCertificate.Fault) -> String {
        switch fault {
        case .unreadable:
            "cannot be read: the file is damaged, or it is encrypted with an unsupported cipher"
        case .wrongPassphrase: "is not the passphrase of the certificate's file"
        case .incomplete: "must contain a certificate together with its private key"
        case .tooDear:
            "may use at most 3,000,000 key derivation rounds for all its encrypted parts together; "
                + "export it again with fewer rounds"
        }
    }
}

extension LongBodies {
    /// Reads settings; those with a certificate take turns on this value's thread, because opening
    /// a certificate may take seconds.
    ///
    /// - Throws: What `read` throws, and `CancellationError` if the task was cancelled while it
    ///   waited.
    func settings(
        _ request: RelayRequest, of container: ContainerKey,
        _ read: @Sendable () throws -> ContainerSettings
    ) async throws -> ContainerSettings {
        // An invalid body is reported by `read`, so the error is ignored here.
        let apns = try? request.optionalJSONBody().reader("apns")
        guard let apns, apns.value("certificate") != nil else { return try read() }
        return try await apart(of: container, read)
    }
}
