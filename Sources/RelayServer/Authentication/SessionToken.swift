import Crypto
package import RelayModel

/// One of the relay's own user tokens.
///
/// It contains the session, the token's expiry, the key that verified the user, and a signature.
/// Its form is `s1_` and, in base64url without padding, 16 bytes of the session's ID, 8 of the
/// expiry in seconds (big endian), 8 random bytes, 8 of the key's mark, and HMAC-SHA-256 of these
/// 40 bytes and the container. It needs no escaping in a URL. The session must be looked up,
/// because the token does not contain the user.
package struct SessionToken: Sendable, Hashable {
    private static let prefix = "s1_"
    private static let signedBytes = 40
    /// The offset of the key's mark, which the tokens of earlier versions do not have.
    private static let keyPlace = 32

    /// The ID of the session.
    package let session: UUIDBytes
    /// The token's expiry.
    package let expiresAt: Timestamp
    /// The mark of the key that verified the user (``mark(of:secret:)``); `nil` in tokens of
    /// earlier versions.
    package let key: [UInt8]?
    private let signed: [UInt8]
    private let signature: [UInt8]

    /// Returns whether `text` claims to be such a token, and not one of an identity provider.
    package static func isOne(_ text: String) -> Bool {
        text.hasPrefix(prefix)
    }

    /// Parses a token; `nil` if it is not well formed.
    ///
    /// The signature is not verified.
    package init?(_ text: String) {
        guard Self.isOne(text), text.utf8.count <= 128,
            let bytes = Base64.decodeToken(text.dropFirst(Self.prefix.count)),
            [Self.keyPlace, Self.signedBytes].contains(bytes.count - SHA256.byteCount),
            let session = UUIDBytes(bytes: bytes[..<16])
        else { return nil }
        self.session = session
        let seconds = bytes[16..<24].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        expiresAt = Timestamp(seconds: Int64(clamping: seconds))
        signed = Array(bytes.dropLast(SHA256.byteCount))
        signature = Array(bytes.suffix(SHA256.byteCount))
        key = signed.count > Self.keyPlace ? Array(signed[Self.keyPlace...]) : nil
    }

    /// Returns the mark by which a token names a key of the container's identity provider.
    ///
    /// It is computed with the secret of the store. Clients can read it, and could otherwise test
    /// guesses of a shared secret against it.
    package static func mark(of key: [UInt8], secret: [UInt8]) -> [UInt8] {
        let code = HMAC<SHA256>.authenticationCode(
            for: Array("user token key\0".utf8) + key, using: SymmetricKey(data: secret))
        return Array(Array(code).prefix(signedBytes - keyPlace))
    }

    /// Makes a token.
    ///
    /// `chance` is 8 unpredictable bytes, so that all tokens differ. `key` is the mark of the key
    /// that verified the user.
    package static func make(
        session: UUIDBytes, expiresAt: Timestamp, container: ContainerKey, secret: [UInt8],
        key: [UInt8], chance: [UInt8]
    ) -> String {
        precondition(chance.count == 8 && key.count == signedBytes - keyPlace)
        let seconds = UInt64(clamping: expiresAt.seconds)
        let moment = stride(from: UInt64(56), through: 0, by: -8).map {
            UInt8(truncatingIfNeeded: seconds >> $0)
        }
        let signed = session.bytes + moment + chance + key
        let code = HMAC<SHA256>.authenticationCode(
            for: signed + Array(container.description.utf8), using: SymmetricKey(data: secret))
        return prefix + Base64.encodeToken(signed + Array(code))
    }

    /// Returns whether the signature was made with `secret` for `container`.
    package func isSigned(by secret: [UInt8], for container: ContainerKey) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(
            signature, authenticating: signed + Array(container.description.utf8),
            using: SymmetricKey(data: secret))
    }
}
