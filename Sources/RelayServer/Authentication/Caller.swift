import Crypto
package import RelayModel

/// Who is calling, as far as the credential says.
package struct Caller: Sendable, Hashable {
    /// How the caller proved itself.
    package enum Proof: Sendable, Hashable {
        /// With the container's API token.
        case apiToken
        /// With a server-to-server signature made by this key.
        case signature(keyID: String)
        /// With an access key of the application's own servers.
        case bearerKey(id: String)
    }

    /// The container and environment that the credential is good for.
    package let container: ContainerKey
    /// How the caller proved itself.
    package let proof: Proof
    /// The user on whose behalf it calls; `nil` if the credential names none.
    package let user: UserID?

    /// The user as whom somebody acts who signs with a server-to-server key: the key's own
    /// identity, which no device belongs to.
    package static func identity(ofKey id: String, container: ContainerKey) -> UserID {
        let digest = SHA256.hash(data: Array("serverToServer/\(container)/\(id)".utf8))
        guard let user = UserID(rawValue: "_" + Hexadecimal.encode(digest.prefix(16))) else {
            preconditionFailure("an underscore and 32 digits are a user record name")
        }
        return user
    }
}
