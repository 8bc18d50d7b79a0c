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
        let signed = "\(Self.encode(header.utf8)).\(Self.encode(claims.utf8))"
        do {
            let signature = try privateKey.signature(for: Array(signed.utf8))
            return ConcealedText("\(signed).\(Self.encode([UInt8](signature.rawRepresentation)))")
        } catch {
            throw KeyError()
        }
    }

    /// Whether `token` was signed with this key.
    ///
    /// A key that was mended keeps its identifier, and what the wrong one signed is still kept.
    func hasSigned(_ token: ConcealedText) -> Bool {
        let parts = token.revealed.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = Base64.decode(String(parts[2])),
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: bytes)
        else { return false }
        return privateKey.publicKey.isValidSignature(
            signature, for: Array("\(parts[0]).\(parts[1])".utf8))
    }

    /// Base64 with the URL-safe letters and without padding (RFC 7515 §2).
    private static func encode(_ bytes: [UInt8]) -> String {
        let letters = Base64.encode(bytes).utf8.compactMap { letter -> UInt8? in
            switch letter {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            case UInt8(ascii: "="): nil
            default: letter
            }
        }
        return String(decoding: letters, as: UTF8.self)
    }
}
