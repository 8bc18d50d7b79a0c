package import RelayModel

/// A right that was revoked or changed, so that connections based on it must be closed.
package enum Revocation: Sendable, Hashable {
    /// One session of a user, which was signed out.
    case session(UUIDBytes, ContainerKey)
    /// All sessions of a user.
    case sessions(UserID, ContainerKey)
    /// An access key.
    case key(String, ContainerKey)
    /// The settings that verify a container's user tokens, above all the keys.
    ///
    /// A client whose token is still valid may connect again.
    case userKeys(ContainerKey)
    /// The part of a container's schema that decides what clients may see; they may connect again.
    case schema(ContainerKey)

    /// The reason that clients are told.
    var reason: String {
        switch self {
        case .session: "the user has signed out"
        case .sessions: "the user's sessions were revoked"
        case .key: "the key was revoked"
        case .userKeys: "the container's settings for verifying user tokens were changed"
        case .schema: "the container's schema was changed"
        }
    }
}
