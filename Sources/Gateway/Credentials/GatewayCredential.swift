package import RelayModel

/// A text that is never shown in a description, log or error.
package struct ConcealedText: Sendable, Hashable, CustomStringConvertible,
    CustomDebugStringConvertible, CustomReflectable
{
    /// The text itself, for the one place that needs it.
    package let revealed: String

    /// Conceals `text`.
    package init(_ text: String) {
        revealed = text
    }

    /// A placeholder for the text.
    package var description: String { "concealed" }
    /// A placeholder for the text.
    package var debugDescription: String { description }
    /// A mirror without the text.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The credential of a container at the gateway.
package enum GatewayCredential: Sendable, Hashable {
    /// A key that signs provider tokens.
    case signingKey(SigningKey)
    /// A TLS client certificate.
    case certificate(ClientCertificate)

    /// A key of a team (APNs: an authentication key, a `.p8` file).
    package struct SigningKey: Sendable, Hashable {
        /// The team's identifier (APNs: 10 letters and digits).
        package let teamID: String
        /// The key's identifier (APNs: 10 letters and digits).
        package let keyID: String
        /// The P-256 private key in PEM form.
        package let privateKeyPEM: ConcealedText

        /// Creates a key, or returns `nil` if an identifier is not 1 to 64 ASCII letters and
        /// digits.
        ///
        /// Whether the PEM text can be read is only checked when the first token is signed.
        package init?(teamID: String, keyID: String, privateKeyPEM: ConcealedText) {
            guard Self.isIdentifier(teamID), Self.isIdentifier(keyID) else { return nil }
            self.teamID = teamID
            self.keyID = keyID
            self.privateKeyPEM = privateKeyPEM
        }

        private static func isIdentifier(_ text: String) -> Bool {
            (1...64).contains(text.utf8.count)
                && text.unicodeScalars.allSatisfy {
                    $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0))
                }
        }
    }

    /// A certificate with its private key.
    package struct ClientCertificate: Sendable, Hashable {
        /// How the bytes are packed.
        package enum Packing: String, Sendable, Hashable, CaseIterable {
            /// PEM texts: certificate chain and key one after the other.
            case pem = "PEM"
            /// A PKCS#12 file.
            case pkcs12 = "P12"
        }

        /// How ``bytes`` are packed.
        package let packing: Packing
        /// Certificate and private key.
        package let bytes: ConcealedText
        /// The passphrase of the key, empty for none.
        package let passphrase: ConcealedText

        /// Creates a certificate from the file's bytes.
        package init(packing: Packing, bytes: [UInt8], passphrase: ConcealedText = .init("")) {
            self.packing = packing
            self.bytes = ConcealedText(Base64.encode(bytes))
            self.passphrase = passphrase
        }
    }
}

/// Returns the credential of a container for one of the gateway's environments.
///
/// It is called on the gateway's own thread when a container is first seen and after
/// ``CurlPushGateway/credentialChanged(for:)``. It must answer from memory. `nil` means that the
/// container has none, and its requests are refused for want of a credential.
package typealias CredentialSource =
    @Sendable (ContainerKey, GatewayEnvironment) -> GatewayCredential?
