package import RelayModel

/// A change whose conditions took more evaluation steps than one change may take.
package struct DearEntry: Sendable, Hashable {
    /// The position of the change.
    package let position: LogPosition
    /// The container of the change.
    package let container: ContainerKey
    /// The serials of the subscriptions whose conditions took the most steps.
    package let dearest: [UInt64]
    /// The reason in words.
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
