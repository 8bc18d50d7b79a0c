import Storage

/// The tables that keep versions: rows with a serial, an owner, an activation and an end.
enum VersionTable: String, Sendable, CaseIterable {
    case subscription
    case device

    /// The kind of version in the table.
    var kind: VersionEnding.Kind {
        switch self {
        case .subscription: .subscription
        case .device: .device
        }
    }

    /// Returns the start of a statement, up to the condition, whose rows ``SubscriptionVersion``
    /// and ``DeviceVersion`` can be read from.
    ///
    /// `further` lists further columns, each preceded by a comma.
    func select(_ further: String = "") -> String {
        """
        SELECT \(rawValue).*, user.name AS ownerName, container.name AS containerName,
            container.environment\(further)
        FROM \(rawValue)
            JOIN user ON user.id = \(rawValue).owner
            JOIN container ON container.id = \(rawValue).container
        """
    }

    /// Returns the condition for the active devices of a container, whose number is the first
    /// parameter, or of one of its users, whose name is the second.
    ///
    /// There are two conditions, because a common one would look at every device. The second one
    /// uses only the user's number, which implies the container: with the container too, SQLite
    /// would walk the container's devices in the requested order.
    static func liveDevices(ofOne isOne: Bool) -> String {
        isOne
            ? """
            ended IS NULL
                AND device.owner = (SELECT id FROM user WHERE container = ?1 AND name = ?2)
            """
            : "device.container = ?1 AND ended IS NULL AND ?2 IS NULL"
    }
}
