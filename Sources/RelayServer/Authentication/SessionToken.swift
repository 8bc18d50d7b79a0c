import Crypto
package import RelayModel

/// One of the relay's own user tokens: a session, until when this token counts, with which key of
/// the container its user was verified, and a signature.
///
/// Form: `s1_` and, in base64url without padding, 16 bytes of session, 8 of the last second (big
/// endian), 8 of chance, 8 of the key, and HMAC-SHA-256 of these 40 and the container. It needs no
/// escaping in a URL. The session itself is looked up: the token says nothing of who its user is.
package struct SessionToken: Sendable, Hashable {
    private static let prefix = "s1_"
    private static let signedBytes = 40
    /// Where the key begins, which the tokens of earlier versions did not name.
    private static let keyPlace = 32

    /// The session.
    package let session: UUIDBytes
    /// When the token stops being valid.
    package let expiresAt: Timestamp
    /// The key with which the user was verified: ``mark(of:secret:)``; `nil` where it is not said.
    package let key: [UInt8]?
    private let signed: [UInt8]
    private let signature: [UInt8]

    /// Whether `text` wants to be such a token, and not one of an identity provider.
    package static func isOne(_ text: String) -> Bool {
        text.hasPrefix(prefix)
    }

    /// Reads a token; `nil` if it is none.
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

    /// How a token names a key of the container's identity provider.
    ///
    /// It is made with the secret of the store: clients read it, and could otherwise try shared
    /// secrets against it.
    package static func mark(of key: [UInt8], secret: [UInt8]) -> [UInt8] {
        let code = HMAC<SHA256>.authenticationCode(
            for: Array("user token key\0".utf8) + key, using: SymmetricKey(data: secret))
        return Array(Array(code).prefix(signedBytes - keyPlace))
    }

    /// Makes a token; `chance` is 8 unpredictable bytes, so that no two are alike, and `key` is how
    /// it names the key with which its user was verified.
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

    /// Whether the signature is the one of `secret` for `container`.
    package func isSigned(by secret: [UInt8], for container: ContainerKey) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(
            signature, authenticating: signed + Array(container.description.utf8),
            using: SymmetricKey(data: secret))
    }
}
