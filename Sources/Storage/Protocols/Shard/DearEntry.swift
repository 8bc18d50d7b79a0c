package import RelayModel

/// A change whose conditions took more steps than one change may take.
package struct DearEntry: Sendable, Hashable {
    /// Its place.
    package let position: LogPosition
    /// Whose it is.
    package let container: ContainerKey
    /// The serials of the subscriptions whose conditions took most.
    package let dearest: [UInt64]
    /// What is told of it.
    package let reason: String

    package init(
        position: LogPosition, container: ContainerKey, dearest: [UInt64], reason: String
    ) {
        self.position = position
        self.container = container
        self.dearest = dearest
        self.reason = reason
    }
}
