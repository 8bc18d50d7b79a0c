/// A token-signing key of the gateway's provider.
package struct ProviderCredential: Sendable, Hashable, CustomStringConvertible {
    /// The team ID (APNs: ten characters).
    package var teamID: String
    /// The key ID (APNs: ten characters).
    package var keyID: String
    /// The ECDSA P-256 private key in PEM form, which is a secret.
    package var privateKeyPEM: String

    package init(teamID: String, keyID: String, privateKeyPEM: String) {
        self.teamID = teamID
        self.keyID = keyID
        self.privateKeyPEM = privateKeyPEM
    }

    /// The IDs, without the secret.
    package var description: String { "team \(teamID), key \(keyID)" }
}

/// A TLS client certificate of the gateway's provider, with its private key.
package struct ProviderCertificate: Sendable, Hashable, CustomStringConvertible {
    /// The format of the file.
    package enum Packing: String, Sendable, Hashable, CaseIterable {
        /// PEM texts: certificates and key one after the other.
        case pem
        /// A PKCS#12 file (`.p12`).
        case pkcs12
    }

    /// The format of the file.
    package var packing: Packing
    /// The file's bytes, which are a secret.
    package var bytes: [UInt8]
    /// The passphrase of the key, which is a secret; empty if there is none.
    package var passphrase: String

    package init(packing: Packing, bytes: [UInt8], passphrase: String) {
        self.packing = packing
        self.bytes = bytes
        self.passphrase = passphrase
    }

    /// The format, without the secrets.
    package var description: String { "certificate (\(packing.rawValue))" }
}
