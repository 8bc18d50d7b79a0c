package import RelayModel

/// A subscription that the relay disabled because changes were set aside due to its condition.
package struct DisabledSubscription: Sendable, Hashable {
    /// Its last version.
    package let version: SubscriptionVersion
    /// Why it ended.
    package let reason: String
    /// The entry of the log that ended it.
    package let position: LogPosition

    package init(version: SubscriptionVersion, reason: String, position: LogPosition) {
        self.version = version
        self.reason = reason
        self.position = position
    }
}
