import Storage

/// The tables that keep versions: rows with a serial, an owner, an activation and an end.
enum VersionTable: String, Sendable, CaseIterable {
    case subscription
    case device

    /// What ends there.
    var kind: VersionEnding.Kind {
        switch self {
        case .subscription: .subscription
        case .device: .device
        }
    }

    /// What ``SubscriptionVersion`` and ``DeviceVersion`` are read from, up to the condition;
    /// `further` are further columns, each after a comma.
    func select(_ further: String = "") -> String {
        """
        SELECT \(rawValue).*, user.name AS ownerName, container.name AS containerName,
            container.environment\(further)
        FROM \(rawValue)
            JOIN user ON user.id = \(rawValue).owner
            JOIN container ON container.id = \(rawValue).container
        """
    }
}
