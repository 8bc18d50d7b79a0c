package import RelayModel

extension RetryLane {
    /// The lane as an engine stores it within a container.
    package var stored: String { "\(environment.rawValue) \(topic)" }

    /// Creates a lane from its ``stored`` text.
    package init?(_ stored: String, of container: ContainerKey) {
        let parts = stored.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard let environment = GatewayEnvironment(rawValue: String(parts[0])) else { return nil }
        self.init(
            container: container, environment: environment,
            topic: parts.count > 1 ? String(parts[1]) : "")
    }
}
