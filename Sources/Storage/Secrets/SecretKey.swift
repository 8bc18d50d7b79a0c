import Crypto
import RelayModel

/// A key with which the secrets of a store are encrypted: 32 bytes that only the operator has.
package struct SecretKey: Sendable, Hashable, CustomStringConvertible {
    /// What tells the key from others and says nothing of it: the beginning of a digest.
    package let id: String
    private let bytes: [UInt8]

    /// What the text of a key must be.
    package static let rule = "32 bytes in 64 hexadecimal digits, or in base64"

    /// Reads a key as a file or the environment has it; `nil` if the text is none.
    package init?(text: String) {
        let digits = String(text.filter { !$0.isWhitespace })
        let decoded = digits.utf8.count == 64 ? Hexadecimal.decode(digits) : Base64.decode(digits)
        guard let decoded, decoded.count == 32 else { return nil }
        self.init(bytes: decoded)
    }

    /// Creates a key of 32 unpredictable bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
        let digest = SHA256.hash(data: Array("belfry secrets key\n".utf8) + bytes)
        id = Hexadecimal.encode(digest.prefix(8))
    }

    /// The name of the key, and nothing of the key itself.
    package var description: String { "key \(id)" }

    /// The key as ``init(text:)`` reads it, to be written down.
    package var text: String { Hexadecimal.encode(bytes) }

    /// AES-256-GCM under a fresh nonce: nonce, ciphertext and tag, bound to `place`.
    package func seal(_ secret: [UInt8], at place: String) throws -> [UInt8] {
        let box = try AES.GCM.seal(
            secret, using: SymmetricKey(data: bytes), authenticating: Array(place.utf8))
        return Array(box.nonce) + Array(box.ciphertext) + Array(box.tag)
    }

    /// What ``seal(_:at:)`` took; `nil` if these are not its bytes for this key and place.
    package func open(_ sealed: [UInt8], at place: String) -> [UInt8]? {
        guard let box = try? AES.GCM.SealedBox(combined: sealed),
            let secret = try? AES.GCM.open(
                box, using: SymmetricKey(data: bytes), authenticating: Array(place.utf8))
        else { return nil }
        return Array(secret)
    }
}

extension SecretKey: CustomReflectable {
    /// Nothing: what looks into values for the sake of a message must not find the key.
    package var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}
