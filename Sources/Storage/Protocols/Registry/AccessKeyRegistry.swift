package import RelayModel

/// The keys with which applications and their servers call the relay.
package protocol AccessKeyRegistry: Sendable {
    /// Saves an access key.
    func save(_ key: AccessKey) async throws
    /// Returns the keys of one container, newest first, including revoked ones.
    func accessKeys(of container: ContainerKey) async throws -> [AccessKey]
    /// Revokes a key and returns whether there was one to revoke.
    func revokeAccessKey(
        _ id: String, of container: ContainerKey, at now: Timestamp
    ) async throws -> Bool
}

/// A key with which a client or server calls the relay.
package struct AccessKey: Sendable, Hashable {
    /// What a key is for.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A container's API token, which comes with a user token.
        case apiToken
        /// A CloudKit server-to-server key: the public half.
        case serverToServer
        /// A bearer key of the application's own servers.
        case bearer
    }

    /// The key's name.
    ///
    /// For ``Kind/serverToServer``, the key ID of the request header.
    package var id: String
    /// The container and environment that the key is valid for.
    package var container: ContainerKey
    /// The kind of the key.
    package var kind: Kind
    /// SHA-256 of the secret in hexadecimal digits; for ``Kind/serverToServer`` the public key in
    /// PEM form.
    package var verifier: String
    /// The label that people gave it.
    package var label: String
    /// The moment of creation.
    package var createdAt: Timestamp
    /// The moment of revocation, if it was revoked.
    package var revokedAt: Timestamp?

    package init(
        id: String, container: ContainerKey, kind: Kind, verifier: String, label: String,
        createdAt: Timestamp
    ) {
        self.id = id
        self.container = container
        self.kind = kind
        self.verifier = verifier
        self.label = label
        self.createdAt = createdAt
    }
}
