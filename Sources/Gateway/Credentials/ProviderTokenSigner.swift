import Crypto
import RelayModel

/// Signs provider tokens: a JWT with ES256 (APNs: Establishing a token-based connection).
struct ProviderTokenSigner: Sendable {
    /// Why a key cannot sign.
    struct KeyError: Error, Sendable, Hashable, CustomStringConvertible {
        var description: String {
            "the signing key cannot be read: a P-256 private key in PEM form is expected"
        }
    }

    private let key: GatewayCredential.SigningKey
    private let privateKey: P256.Signing.PrivateKey

    /// Reads the private key.
    init(_ key: GatewayCredential.SigningKey) throws(KeyError) {
        self.key = key
        do {
            privateKey = try P256.Signing.PrivateKey(pemRepresentation: key.privateKeyPEM.revealed)
        } catch {
            throw KeyError()
        }
    }

    /// A token that claims to be of `issuedAt`.
    func sign(issuedAt: Timestamp) throws(KeyError) -> ConcealedText {
        let header: JSONValue = ["alg": "ES256", "kid": .string(key.keyID)]
        let claims: JSONValue = [
            "iss": .string(key.teamID), "iat": .integer(issuedAt.seconds),
        ]
        return ConcealedText(
            try CompactJWS.text(header: header, payload: claims) { bytes throws(KeyError) in
                do {
                    return Array(try privateKey.signature(for: bytes).rawRepresentation)
                } catch {
                    throw KeyError()
                }
            })
    }

    /// Whether `token` was signed with this key.
    ///
    /// A key that was mended keeps its identifier, and what the wrong one signed is still kept.
    func hasSigned(_ token: ConcealedText) -> Bool {
        guard let parts = CompactJWS(token.revealed), let bytes = Base64.decode(parts.signature),
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: bytes)
        else { return false }
        return privateKey.publicKey.isValidSignature(signature, for: parts.signedBytes)
    }
}
