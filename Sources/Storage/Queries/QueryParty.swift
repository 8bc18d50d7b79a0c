package import RelayModel

/// The party that queries, for the sharing of readers: no party takes all the turns of a container.
package enum QueryParty: Sendable, Hashable {
    /// All callers together that are not signed in.
    case strangers
    /// One user.
    case user(UserID)
    /// A server of the application.
    case server
}
