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

    /// Returns a token with the time of issue `issuedAt`.
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

    /// Returns whether `token` was signed with this key.
    ///
    /// A key that was corrected keeps its ID, and a token signed with the wrong key may still be
    /// stored.
    func hasSigned(_ token: ConcealedText) -> Bool {
        guard let parts = CompactJWS(token.revealed), let bytes = Base64.decode(parts.signature),
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: bytes)
        else { return false }
        return privateKey.publicKey.isValidSignature(signature, for: parts.signedBytes)
    }
}
