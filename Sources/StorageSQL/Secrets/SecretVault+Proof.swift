package import Storage

/// What may be left in the file of secrets in plain form after they were encrypted.
package enum SecretRemains: Sendable, Hashable {
    /// Nothing.
    case nothing
    /// Free space within pages may contain some, so the file must still be rewritten.
    case inFreePages
}

extension SecretVault {
    private static let rightKey = "the key that opens this is the right one"
    private static let rightKeyBesideRemains =
        "the key that opens this is the right one, and free pages are to be overwritten"

    /// Returns the text that a store keeps to detect a wrong key, and to record what is still to be
    /// done.
    package func proof(_ remains: SecretRemains = .nothing) throws -> String {
        let text = remains == .nothing ? Self.rightKey : Self.rightKeyBesideRemains
        return try seal(text, at: SecretPlace.proof)
    }

    /// Checks that a configured key is the one with this ID, which encrypted the store's secrets
    /// and the proof.
    ///
    /// - Returns: What may be left of secrets in plain form.
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the store needs a key that is not
    ///   configured.
    @discardableResult
    package func check(
        _ keyID: String, _ proof: String, of path: String
    ) throws -> SecretRemains {
        guard let current else {
            throw StorageError.secrets(
                path: path,
                reason: "they are encrypted with the key \(keyID), but no key is configured: set "
                    + "secrets.keyFile or secrets.key")
        }
        guard ([current] + previous).contains(where: { $0.id == keyID }) else {
            throw StorageError.secrets(
                path: path,
                reason: "they are encrypted with the key \(keyID), but the configured one is "
                    + "\(current.id): set the right one, or name the previous one in "
                    + "secrets.previousKeyFile")
        }
        switch try open(proof, at: SecretPlace.proof) {
        case Self.rightKey: return .nothing
        case Self.rightKeyBesideRemains: return .inFreePages
        default:
            throw StorageError.damaged(path: path, reason: "the proof of the secrets' key is wrong")
        }
    }
}
