package import Storage

extension SecretVault {
    private static let proof = "the key that opens this is the right one"

    /// What a store keeps, so that another key is found out.
    package func proof() throws -> String {
        try seal(Self.proof, at: SecretPlace.proof)
    }

    /// Sees whether the keys are those of a store whose secrets are encrypted with the key of this
    /// ID, which has made this proof.
    ///
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the store needs a key that is not here.
    package func check(_ keyID: String, _ proof: String, of path: String) throws {
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
        guard try open(proof, at: SecretPlace.proof) == Self.proof else {
            throw StorageError.damaged(path: path, reason: "the proof of the secrets' key is wrong")
        }
    }
}
