import Crypto
import FoundationEssentials
import RelayModel

/// Makes continuation markers opaque, because a marker can name a record that its client may not
/// read: one that was only looked at.
struct MarkerSeal: Sendable {
    private let key: SymmetricKey
    private let chance: @Sendable (Int) -> [UInt8]

    /// Makes a seal of the store's secret; `chance` gives unpredictable bytes.
    ///
    /// A store that was made of a copy has the copy's secret: its identity makes the difference.
    init(secret: [UInt8], store: UUIDBytes, chance: @escaping @Sendable (Int) -> [UInt8]) {
        key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: secret), salt: store.bytes,
            info: Data("continuationMarker".utf8), outputByteCount: 32)
        self.chance = chance
    }

    /// The text as clients carry it; it opens with the same `subject` only.
    func close(_ text: [UInt8], subject: String) throws -> String {
        let box = try AES.GCM.seal(
            text, using: key, nonce: AES.GCM.Nonce(data: chance(12)),
            authenticating: Array(subject.utf8))
        return Base64.encode(Array(box.nonce) + Array(box.ciphertext) + Array(box.tag))
    }

    /// What ``close(_:subject:)`` closed; `nil` if it is something else.
    func open(_ text: String, subject: String) -> [UInt8]? {
        guard let bytes = Base64.decode(text),
            let box = try? AES.GCM.SealedBox(combined: bytes),
            let opened = try? AES.GCM.open(
                box, using: key, authenticating: Array(subject.utf8))
        else { return nil }
        return Array(opened)
    }
}
