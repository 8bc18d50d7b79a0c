import Crypto
import FoundationEssentials
import RelayModel

/// Encrypts continuation markers, because a marker can name a record that was only looked at, and
/// that its client may not read.
struct MarkerSeal: Sendable {
    private let key: SymmetricKey
    private let chance: @Sendable (Int) -> [UInt8]

    /// Creates a seal from the store's secret; `chance` returns unpredictable bytes.
    ///
    /// A store that was made from a copy has the same secret, so the store's identity is used as
    /// well.
    init(secret: [UInt8], store: UUIDBytes, chance: @escaping @Sendable (Int) -> [UInt8]) {
        key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: secret), salt: store.bytes,
            info: Data("continuationMarker".utf8), outputByteCount: 32)
        self.chance = chance
    }

    /// Returns the encrypted text; it can be opened only with the same `subject`.
    func close(_ text: [UInt8], subject: String) throws -> String {
        let box = try AES.GCM.seal(
            text, using: key, nonce: AES.GCM.Nonce(data: chance(12)),
            authenticating: Array(subject.utf8))
        return Base64.encode(Array(box.nonce) + Array(box.ciphertext) + Array(box.tag))
    }

    /// Returns what ``close(_:subject:)`` encrypted; `nil` for any other text.
    func open(_ text: String, subject: String) -> [UInt8]? {
        guard let bytes = Base64.decode(text),
            let box = try? AES.GCM.SealedBox(combined: bytes),
            let opened = try? AES.GCM.open(
                box, using: key, authenticating: Array(subject.utf8))
        else { return nil }
        return Array(opened)
    }
}
