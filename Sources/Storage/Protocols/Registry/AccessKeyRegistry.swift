package import RelayModel

/// The keys with which applications and their servers call.
package protocol AccessKeyRegistry: Sendable {
    /// Saves an access key.
    func save(_ key: AccessKey) async throws
    /// The keys of one container, the newest first, revoked ones included.
    func accessKeys(of container: ContainerKey) async throws -> [AccessKey]
    /// Revokes a key; returns whether there was one to revoke.
    func revokeAccessKey(
        _ id: String, of container: ContainerKey, at now: Timestamp
    ) async throws -> Bool
}

/// A key with which somebody calls the relay.
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

    /// The name; for ``Kind/serverToServer`` the key ID of the request header.
    package var id: String
    /// The container and environment it is good for.
    package var container: ContainerKey
    /// What it is for.
    package var kind: Kind
    /// SHA-256 of the secret in hexadecimal digits; for ``Kind/serverToServer`` the public key in
    /// PEM form.
    package var verifier: String
    /// What people call it.
    package var label: String
    /// When it was made.
    package var createdAt: Timestamp
    /// When it was revoked, if it was.
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
