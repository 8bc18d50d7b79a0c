import Crypto
import RelayModel

/// A key that encrypts the secrets of a store: 32 bytes that only the operator has.
package struct SecretKey: Sendable, Hashable, CustomStringConvertible {
    /// The identifier that distinguishes the key from others without revealing it: the beginning of
    /// a digest.
    package let id: String
    private let bytes: [UInt8]

    /// The required form of a key's text.
    package static let rule = "32 bytes in 64 hexadecimal digits, or in base64"

    /// Creates a key from the text in a file or the environment, or returns `nil` if the text is
    /// not a key.
    package init?(text: String) {
        let digits = String(text.filter { !$0.isWhitespace })
        let decoded = digits.utf8.count == 64 ? Hexadecimal.decode(digits) : Base64.decode(digits)
        guard let decoded, decoded.count == 32 else { return nil }
        self.init(bytes: decoded)
    }

    /// Creates a key from 32 unpredictable bytes, or returns `nil` for another number of bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
        let digest = SHA256.hash(data: Array("belfry secrets key\n".utf8) + bytes)
        id = Hexadecimal.encode(digest.prefix(8))
    }

    /// The identifier of the key, which reveals nothing of the key itself.
    package var description: String { "key \(id)" }

    /// The key in the form that ``init(text:)`` reads, to be written down.
    package var text: String { Hexadecimal.encode(bytes) }

    /// Encrypts a secret with AES-256-GCM under a fresh nonce, and returns nonce, ciphertext and
    /// tag, bound to `place`.
    package func seal(_ secret: [UInt8], at place: String) throws -> [UInt8] {
        let box = try AES.GCM.seal(
            secret, using: SymmetricKey(data: bytes), authenticating: Array(place.utf8))
        return Array(box.nonce) + Array(box.ciphertext) + Array(box.tag)
    }

    /// Returns the secret that ``seal(_:at:)`` encrypted, or `nil` if the bytes do not belong to
    /// this key and place.
    package func open(_ sealed: [UInt8], at place: String) -> [UInt8]? {
        guard let box = try? AES.GCM.SealedBox(combined: sealed),
            let secret = try? AES.GCM.open(
                box, using: SymmetricKey(data: bytes), authenticating: Array(place.utf8))
        else { return nil }
        return Array(secret)
    }
}

extension SecretKey: CustomReflectable {
    /// A mirror that contains only the identifier, so that messages built by reflection never
    /// contain the key.
    package var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}
