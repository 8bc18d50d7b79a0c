package import Storage

/// What may be left of secrets as they were before they were encrypted.
package enum SecretRemains: Sendable, Hashable {
    /// Nothing.
    case nothing
    /// Free space of pages may hold some: the file is still to be written anew.
    case inFreePages
}

extension SecretVault {
    private static let rightKey = "the key that opens this is the right one"
    private static let rightKeyBesideRemains =
        "the key that opens this is the right one, and free pages are to be overwritten"

    /// What a store keeps, so that another key is found out, and what is still to be done.
    package func proof(_ remains: SecretRemains = .nothing) throws -> String {
        let text = remains == .nothing ? Self.rightKey : Self.rightKeyBesideRemains
        return try seal(text, at: SecretPlace.proof)
    }

    /// Sees whether the keys are those of a store whose secrets are encrypted with the key of this
    /// ID, which has made this proof.
    ///
    /// - Returns: What may be left from before.
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the store needs a key that is not here.
    @discardableResult
    package func check(
        _ keyID: String, _ proof: String, of path: String
    ) throws -> SecretRemains {
        guard let current else {
            throw StorageError.secrets(
                path: path,
                reason: "they are encrypted with the key \(keyID), and none is configured: set "
                    + "secrets.keyFile or secrets.key")
        }
        guard ([current] + previous).contains(where: { $0.id == keyID }) else {
            throw StorageError.secrets(
                path: path,
                reason: "they are encrypted with the key \(keyID), and the configured one is "
                    + "\(current.id): set the right one, or name the one before in "
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
