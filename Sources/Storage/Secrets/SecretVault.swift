import RelayModel

/// Encrypts secrets that are written to the store, and decrypts them when they are read.
///
/// A sealed text is `sealed:1:`, the ID of the key, a colon, and nonce, ciphertext and tag in
/// base64url. It is bound to its place, so that an attacker who can write the file cannot move one
/// container's secret to another's row. Without a key, texts stay in plain form.
package struct SecretVault: Sendable, Hashable {
    /// The key that encrypts new secrets; `nil` leaves them in plain form.
    package var current: SecretKey?
    /// The keys that may have encrypted older secrets, while the key is being replaced.
    package var previous: [SecretKey]

    /// Creates a vault from the current key and its predecessors.
    package init(current: SecretKey? = nil, previous: [SecretKey] = []) {
        self.current = current
        self.previous = previous
    }

    private static let prefix = "sealed:1:"

    /// Returns the text to store at `place`.
    package func seal(_ text: String, at place: String) throws -> String {
        guard let current else { return text }
        let sealed = try current.seal(Array(text.utf8), at: place)
        return "\(Self.prefix)\(current.id):\(Base64.encodeToken(sealed))"
    }

    /// Returns the secret that was stored at `place`.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if no key of this vault decrypts it.
    package func open(_ stored: String, at place: String) throws -> String {
        guard stored.hasPrefix(Self.prefix) else { return stored }
        let parts = stored.dropFirst(Self.prefix.count).split(separator: ":")
        let keys = [current].compactMap(\.self) + previous
        guard parts.count == 2, let key = keys.first(where: { $0.id == parts[0] }),
            let sealed = Base64.decodeToken(parts[1]), let bytes = key.open(sealed, at: place),
            let text = String(utf8: bytes)
        else {
            throw StorageError.damaged(path: place, reason: "the secret cannot be decrypted")
        }
        return text
    }
}

/// The places to which sealed secrets are bound.
package enum SecretPlace {
    /// A column of a container's row.
    package static func container(_ column: String, _ name: String, _ environment: String) -> String
    {
        "container.\(column) \(name)/\(environment)"
    }

    /// The definition of a change source.
    package static func source(
        _ source: String, _ container: String, _ environment: String
    ) -> String {
        "changeSource.definition \(container)/\(environment)/\(source)"
    }

    /// A provider token.
    package static func providerToken(
        _ team: String, _ key: String, _ environment: String
    ) -> String {
        "providerToken.token \(team)/\(key)/\(environment)"
    }

    /// The secret of session tokens.
    package static let session = "sessionSecret.secret"

    /// The proof that the configured key is the right one.
    package static let proof = "secretSeal.proof"
}
