package import RelayModel

/// A right that counts no more as it was, so that whoever is connected by it has to go.
package enum Revocation: Sendable, Hashable {
    /// A user's session, which was signed out.
    case session(UUIDBytes, ContainerKey)
    /// All sessions of a user.
    case sessions(UserID, ContainerKey)
    /// An access key.
    case key(String, ContainerKey)
    /// What a container's user tokens are verified by, the keys above all; whose token still counts
    /// may come again.
    case userKeys(ContainerKey)
    /// What the schema of a container lets clients see; they may come again.
    case schema(ContainerKey)

    /// Why, for whoever has to go.
    var reason: String {
        switch self {
        case .session: "the user has signed out"
        case .sessions: "the user's sessions were revoked"
        case .key: "the key was revoked"
        case .userKeys: "what the container's user tokens are verified by was changed"
        case .schema: "the container's schema was changed"
        }
    }
}
