import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The parts of a provider token: a JSON web token in compact form (RFC 7515), as APNs requires it.
struct ProviderToken {
    private struct Header: Decodable {
        var alg: String
        var kid: String
    }

    private struct Claims: Decodable {
        var iss: String
        var iat: Int64
    }

    /// The key identifier.
    let keyID: String
    /// The team.
    let teamID: String
    /// When the token was issued, in seconds since 1970.
    let issuedAt: Int64
    private let signedText: ArraySlice<UInt8>
    private let signature: Data

    /// Parses a token, or returns `nil` if it is malformed.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3,
            let header = Self.decode(Header.self, parts[0]), header.alg == "ES256",
            let claims = Self.decode(Claims.self, parts[1]),
            let signature = Self.base64URL(parts[2])
        else { return nil }
        keyID = header.kid
        teamID = claims.iss
        issuedAt = claims.iat
        signedText = bytes[..<parts[1].endIndex]
        self.signature = signature
    }

    /// Returns whether `key` made the signature: `r` and `s`, 32 bytes each (RFC 7518 §3.4).
    func isSigned(by key: P256.Signing.PublicKey) -> Bool {
        guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
        else { return false }
        return key.isValidSignature(signature, for: signedText)
    }

    private static func decode<Part: Decodable>(
        _ type: Part.Type, _ part: ArraySlice<UInt8>
    ) -> Part? {
        base64URL(part).flatMap { try? JSONDecoder().decode(type, from: $0) }
    }

    private static func base64URL(_ part: ArraySlice<UInt8>) -> Data? {
        guard !part.contains(where: { "+/=".utf8.contains($0) }) else { return nil }
        var text = part.map { byte in
            switch byte {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: byte
            }
        }
        while !text.count.isMultiple(of: 4) { text.append(UInt8(ascii: "=")) }
        return Data(base64Encoded: Data(text))
    }
}
