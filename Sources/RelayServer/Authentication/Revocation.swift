package import RelayModel

/// A credential that counts no more, so that whoever is connected by it has to go.
package enum Revocation: Sendable, Hashable {
    /// A user's session, which was signed out.
    case session(UUIDBytes, ContainerKey)
    /// An access key.
    case key(String, ContainerKey)

    /// Why, for whoever has to go.
    var reason: String {
        switch self {
        case .session: "the user has signed out"
        case .key: "the key was revoked"
        }
    }
}
