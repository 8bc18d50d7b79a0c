import Crypto
package import RelayModel

/// The caller, as the credential identifies it.
package struct Caller: Sendable, Hashable {
    /// The kind of proof.
    package enum Proof: Sendable, Hashable {
        /// With the container's API token.
        case apiToken
        /// With a server-to-server signature made by this key.
        case signature(keyID: String)
        /// With an access key of the application's own servers.
        case bearerKey(id: String)
    }

    /// The container and environment for which the credential is valid.
    package let container: ContainerKey
    /// The caller's proof.
    package let proof: Proof
    /// The user for whom it calls; `nil` if the credential identifies none.
    package let user: UserID?

    /// Returns the user that a server-to-server key acts as: the key's own identity, which has no
    /// devices.
    package static func identity(ofKey id: String, container: ContainerKey) -> UserID {
        let digest = SHA256.hash(data: Array("serverToServer/\(container)/\(id)".utf8))
        guard let user = UserID(rawValue: "_" + Hexadecimal.encode(digest.prefix(16))) else {
            preconditionFailure("an underscore and 32 digits are a user record name")
        }
        return user
    }
}
