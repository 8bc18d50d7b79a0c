package import FoundationEssentials
import RelayModel
package import Storage

extension SecretVault {
    /// Seals bytes as the text of their hexadecimal digits, and returns the sealed text's bytes.
    package func sealBytes(_ bytes: [UInt8], at place: String) throws -> Data {
        guard current != nil else { return Data(bytes) }
        return Data(try seal(Hexadecimal.encode(bytes), at: place).utf8)
    }

    /// Returns the bytes that ``sealBytes(_:at:)`` sealed.
    package func openBytes(_ stored: Data, at place: String) throws -> [UInt8] {
        // A secret in plain form has 32 bytes; a sealed one has more.
        guard stored.count > 32, let text = String(utf8: stored) else {
            return Array(stored)
        }
        guard let bytes = Hexadecimal.decode(try open(text, at: place)) else {
            throw StorageError.damaged(path: place, reason: "the secret cannot be decrypted")
        }
        return bytes
    }
}
