/// The user, database and container of subscriptions, which are the first part of their key.
package struct SubscriptionOwner: Sendable, Hashable {
    /// The container and environment.
    package var container: ContainerKey
    /// The database of the request.
    package var database: DatabaseScope
    /// The user.
    package var user: UserID

    package init(container: ContainerKey, database: DatabaseScope, user: UserID) {
        self.container = container
        self.database = database
        self.user = user
    }
}
