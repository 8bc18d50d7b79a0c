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

    /// The condition of the live devices of a container, whose number is the first argument, or of
    /// one of its users, whose name is the second.
    ///
    /// Two statements, because one for both would look at every device; and by the user's number
    /// alone, which is of one container, because SQLite takes the container's devices in the order
    /// that is asked for.
    static func liveDevices(ofOne isOne: Bool) -> String {
        isOne
            ? """
            ended IS NULL
                AND device.owner = (SELECT id FROM user WHERE container = ?1 AND name = ?2)
            """
            : "device.container = ?1 AND ended IS NULL AND ?2 IS NULL"
    }
}
