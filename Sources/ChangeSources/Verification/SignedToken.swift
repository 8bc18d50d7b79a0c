import Crypto
import RelayModel

/// A body that is a JSON Web Token (RFC 7515, compact form), as Minapp posts it.
struct SignedToken {
    let algorithm: String
    let payload: [UInt8]
    private let signedBytes: [UInt8]
    private let signature: [UInt8]

    /// Parses the token without verifying it.
    init(_ body: [UInt8]) throws(VerificationError) {
        // By bytes, because the sender is not authenticated yet, and processing four megabytes by
        // characters takes a fifth of a second.
        let text = String(decoding: body.drop(while: Self.isBlank), as: UTF8.self)
        guard let parts = CompactJWS(text), let header = Base64.decode(parts.header),
            let payload = Base64.decode(parts.payload),
            let signature = Base64.decode(Self.withoutBlanks(parts.signature)),
            let json = try? JSONValue(parsing: header), case .object(let object) = json,
            // A critical header parameter must be understood (RFC 7515, 4.1.11). One could declare
            // that the payload is not base64.
            case .string(let algorithm)? = object["alg"], object["crit"] == nil
        else { throw .malformedToken }
        self.algorithm = algorithm
        self.payload = payload
        self.signature = signature
        signedBytes = parts.signedBytes
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || (0x09...0x0D).contains(byte)
    }

    private static func withoutBlanks(_ text: Substring) -> String {
        String(decoding: text.utf8.filter { !isBlank($0) }, as: UTF8.self)
    }

    /// Returns the index of the secret that signed this token.
    ///
    /// The algorithm is fixed. `none`, and public-key algorithms that would use the secret as a
    /// public key, are refused before anything is computed.
    func fittingSecret(among secrets: [SourceSecret]) throws(VerificationError) -> Int {
        guard algorithm == "HS256" else { throw .tokenAlgorithm }
        for (index, secret) in secrets.enumerated() {
            let code = HMAC<SHA256>.authenticationCode(
                for: signedBytes, using: SymmetricKey(data: Array(secret.value.utf8)))
            if ConstantTime.equal(Array(code), signature) { return index }
        }
        throw .tokenMismatch
    }
}
