/// The deliveries that one answer of the gateway can concern together: those of one container to
/// one topic in one of the gateway's environments.
package struct RetryLane: Sendable, Hashable {
    /// The container of the deliveries.
    package let container: ContainerKey
    /// The gateway's environment that they go through.
    package let environment: GatewayEnvironment
    /// The application's topic.
    package let topic: String

    /// Creates the lane of a delivery.
    package init(of delivery: Delivery) {
        container = delivery.container
        environment = delivery.gatewayEnvironment
        topic = delivery.notification.topic
    }

    /// Creates a lane from its parts.
    package init(container: ContainerKey, environment: GatewayEnvironment, topic: String) {
        self.container = container
        self.environment = environment
        self.topic = topic
    }
}
