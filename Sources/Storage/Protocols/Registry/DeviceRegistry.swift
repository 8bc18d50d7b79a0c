package import RelayModel

/// The devices that receive users' notifications.
///
/// They are kept as versions, like subscriptions.
package protocol DeviceRegistry: Sendable {
    /// Registers a device and appends the edit to the log.
    ///
    /// The user's earlier token of the device ends, and so does every other device with the same
    /// token: a token has one active owner. A device ID belongs to its user; the same ID of another
    /// user is another device.
    ///
    /// If `naming` is `DeviceNaming.client`, a web courier and another token may share the ID.
    /// The later one then gets an ID of its own.
    ///
    /// A device that was registered before keeps its kindness settings, except for what `spared`
    /// changes. A new device brings its own. A badge in `spared` counts from this log entry on.
    func register(
        _ device: Device, named naming: DeviceNaming, _ spared: DeviceSparing, at now: Timestamp
    ) async throws -> DeviceVersion
    /// Returns the active devices of one user, or of all users if `owner` is `nil`, ordered by
    /// serial.
    func devices(
        of container: ContainerKey, owner: UserID?, limit: Int
    ) async throws -> [DeviceVersion]
    /// Returns a page of the active devices of a container or of one of its users, by ascending
    /// serial.
    func devicePage(
        of container: ContainerKey, owner: UserID?, after serial: UInt64, _ bounds: PageBounds
    ) async throws -> Page<DeviceVersion>
    /// Ends a user's device, as at sign-out, and returns whether there was one.
    ///
    /// Another user's device with the same ID stays.
    func forgetDevice(
        _ id: DeviceID, of user: UserID, in container: ContainerKey, at now: Timestamp
    ) async throws -> Bool
    /// Returns the users who have a device with this ID, ordered by name, at most `limit`.
    func holders(
        of id: DeviceID, in container: ContainerKey, limit: Int
    ) async throws -> [UserID]
}

/// What the ID of a registered device identifies.
package enum DeviceNaming: Sendable, Hashable {
    /// The ID identifies the device, so the previous device with the ID ends.
    case device
    /// The ID identifies a client, such as a page, that may have several tokens.
    ///
    /// Its courier does not end.
    case client
}

/// The changes that a registration makes to a device's kindness settings.
///
/// What it does not mention stays.
package struct DeviceSparing: Sendable, Hashable {
    /// The change to one setting.
    package enum Word<Value: Sendable & Hashable>: Sendable, Hashable {
        /// The setting stays.
        case asBefore
        /// The setting has this value from now on.
        case now(Value)
    }

    /// The quiet hours; `nil` within the value means none.
    package var quietHours: Word<QuietHours?> = .asBefore
    /// Whether the device gets no push while it is connected.
    package var isUnlessConnected: Word<Bool> = .asBefore
    /// The number that the icon shows, which further notifications count on from; `nil` leaves it.
    package var badge: Int64?

    /// A registration that changes nothing.
    package static let asBefore = DeviceSparing()

    package init() {}

    /// Returns the settings after the change.
    package func applied(to before: DeviceKindness) -> DeviceKindness {
        var kindness = before
        if case .now(let hours) = quietHours { kindness.quietHours = hours }
        if case .now(let isSo) = isUnlessConnected { kindness.isUnlessConnected = isSo }
        return kindness
    }
}

extension DeviceRegistry {
    /// Registers a device without changes to its earlier kindness settings.
    package func register(
        _ device: Device, named naming: DeviceNaming, at now: Timestamp
    ) async throws -> DeviceVersion {
        try await register(device, named: naming, .asBefore, at: now)
    }

    /// Registers a device under its own ID.
    package func register(_ device: Device, at now: Timestamp) async throws -> DeviceVersion {
        try await register(device, named: .device, at: now)
    }
}
