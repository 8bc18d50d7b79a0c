import Crypto
package import RelayModel

/// One of the relay's own user tokens: a session, until when this token counts, and a signature.
///
/// Form: `s1_` and, in base64url without padding, 16 bytes of session, 8 of the last second (big
/// endian), 8 of chance, and HMAC-SHA-256 of these 32 and the container. It needs no escaping in a
/// URL. The session itself is looked up: the token says nothing about who its user is.
package struct SessionToken: Sendable, Hashable {
    private static let prefix = "s1_"
    private static let signedBytes = 32

    /// The session.
    package let session: UUIDBytes
    /// When the token stops being valid.
    package let expiresAt: Timestamp
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
            bytes.count == Self.signedBytes + SHA256.byteCount,
            let session = UUIDBytes(bytes: bytes[..<16])
        else { return nil }
        self.session = session
        let seconds = bytes[16..<24].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        expiresAt = Timestamp(seconds: Int64(clamping: seconds))
        signed = Array(bytes[..<Self.signedBytes])
        signature = Array(bytes[Self.signedBytes...])
    }

    /// Makes a token; `chance` is 8 unpredictable bytes, so that no two are alike.
    package static func make(
        session: UUIDBytes, expiresAt: Timestamp, container: ContainerKey, secret: [UInt8],
        chance: [UInt8]
    ) -> String {
        precondition(chance.count == 8)
        let seconds = UInt64(clamping: expiresAt.seconds)
        let moment = stride(from: UInt64(56), through: 0, by: -8).map {
            UInt8(truncatingIfNeeded: seconds >> $0)
        }
        let signed = session.bytes + moment + chance
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
