package import RelayModel

/// What one answer of the gateway can concern together: a container's deliveries by one of the
/// gateway's environments for one topic.
package struct RetryLane: Sendable, Hashable {
    /// Whose deliveries.
    package let container: ContainerKey
    /// By which of the gateway's environments.
    package let environment: GatewayEnvironment
    /// For which application.
    package let topic: String

    /// The lane of a delivery.
    package init(of delivery: Delivery) {
        container = delivery.container
        environment = delivery.gatewayEnvironment
        topic = delivery.notification.topic
    }

    /// As an engine keeps it within a container.
    package var stored: String { "\(environment.rawValue) \(topic)" }

    /// Reads what ``stored`` wrote.
    package init?(_ stored: String, of container: ContainerKey) {
        let parts = stored.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard let environment = GatewayEnvironment(rawValue: String(parts[0])) else { return nil }
        self.container = container
        self.environment = environment
        topic = parts.count > 1 ? String(parts[1]) : ""
    }
}
