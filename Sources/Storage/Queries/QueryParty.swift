package import RelayModel

/// Who asks, as far as places and turns for queries go: nobody takes all those of a container.
package enum QueryParty: Sendable, Hashable {
    /// All together who are not signed in.
    case strangers
    /// One user.
    case user(UserID)
    /// A server of the application's own.
    case server
}
