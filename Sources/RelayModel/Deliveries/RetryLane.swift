/// What one answer of the gateway can concern together: a container's deliveries by one of the
/// gateway's environments for one topic.
package struct RetryLane: Sendable, Hashable {
    /// Whose deliveries.
    package let container: ContainerKey
    /// Which of the gateway's environments it goes through.
    package let environment: GatewayEnvironment
    /// For which application.
    package let topic: String

    /// The lane of a delivery.
    package init(of delivery: Delivery) {
        container = delivery.container
        environment = delivery.gatewayEnvironment
        topic = delivery.notification.topic
    }

    /// The lane with these parts.
    package init(container: ContainerKey, environment: GatewayEnvironment, topic: String) {
        self.container = container
        self.environment = environment
        self.topic = topic
    }
}
