/// A token-signing key of the gateway's provider.
package struct ProviderCredential: Sendable, Hashable, CustomStringConvertible {
    /// The team (APNs: ten characters).
    package var teamID: String
    /// The key (APNs: ten characters).
    package var keyID: String
    /// The ECDSA P-256 private key in PEM form: a secret.
    package var privateKeyPEM: String

    package init(teamID: String, keyID: String, privateKeyPEM: String) {
        self.teamID = teamID
        self.keyID = keyID
        self.privateKeyPEM = privateKeyPEM
    }

    /// The names without the secret.
    package var description: String { "team \(teamID), key \(keyID)" }
}

/// A TLS client certificate of the gateway's provider, with its private key.
package struct ProviderCertificate: Sendable, Hashable, CustomStringConvertible {
    /// How the file is packed.
    package enum Packing: String, Sendable, Hashable, CaseIterable {
        /// PEM texts, certificates and key one after the other.
        case pem
        /// A PKCS#12 file (`.p12`).
        case pkcs12
    }

    /// How the file is packed.
    package var packing: Packing
    /// The file's bytes: a secret.
    package var bytes: [UInt8]
    /// The passphrase of the key, empty for none: a secret.
    package var passphrase: String

    package init(packing: Packing, bytes: [UInt8], passphrase: String) {
        self.packing = packing
        self.bytes = bytes
        self.passphrase = passphrase
    }

    /// The form without the secrets.
    package var description: String { "certificate (\(packing.rawValue))" }
}
