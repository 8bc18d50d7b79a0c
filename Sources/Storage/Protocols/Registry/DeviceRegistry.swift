package import RelayModel

/// The devices on which users are told.
///
/// They are kept as versions, as subscriptions are.
package protocol DeviceRegistry: Sendable {
    /// Registers a device and appends the edit to the log. An earlier token of the user's device
    /// ends, and so does every other device with the same token: a token has one live owner. An ID
    /// is its user's: that of another user is another device.
    ///
    /// Where `naming` is that of a client, a web courier and another token may have its name at the
    /// same time: the later one gets an ID of its own then.
    ///
    /// How the device wants to be spared stays as an earlier registration of it said, but for what
    /// `spared` says; a device that was not known says it itself. A badge that `spared` says counts
    /// from the entry of the log on.
    func register(
        _ device: Device, named naming: DeviceNaming, _ spared: DeviceSparing, at now: Timestamp
    ) async throws -> DeviceVersion
    /// The active devices of one user, ordered by serial; of every user if `owner` is `nil`.
    func devices(
        of container: ContainerKey, owner: UserID?, limit: Int
    ) async throws -> [DeviceVersion]
    /// The active devices of a container, or of one user of it, by ascending serial.
    func devicePage(
        of container: ContainerKey, owner: UserID?, after serial: UInt64, _ bounds: PageBounds
    ) async throws -> Page<DeviceVersion>
    /// Ends a user's device, as at sign-out; returns whether there was one. Another user's of the
    /// same ID stays.
    func forgetDevice(
        _ id: DeviceID, of user: UserID, in container: ContainerKey, at now: Timestamp
    ) async throws -> Bool
    /// The users who have a device of this ID, by name, at most `limit`.
    func holders(
        of id: DeviceID, in container: ContainerKey, limit: Int
    ) async throws -> [UserID]
}

/// What the ID of a device that is registered names.
package enum DeviceNaming: Sendable, Hashable {
    /// The device: whatever had the ID before ends.
    case device
    /// A client, such as a page, that may have several tokens: no courier of it ends.
    case client
}

/// What a registration says of how a device wants to be spared: what it does not mention stays.
package struct DeviceSparing: Sendable, Hashable {
    /// What becomes of one thing that may be asked for.
    package enum Word<Value: Sendable & Hashable>: Sendable, Hashable {
        /// It stays.
        case asBefore
        /// It is this from now on.
        case now(Value)
    }

    /// The quiet hours, or none.
    package var quietHours: Word<QuietHours?> = .asBefore
    /// Whether it is not to be pushed to while it is connected.
    package var isUnlessConnected: Word<Bool> = .asBefore
    /// The number that its icon shows, from which on is counted; `nil` leaves it.
    package var badge: Int64?

    /// Nothing is mentioned.
    package static let asBefore = DeviceSparing()

    package init() {}

    /// What is asked for after it.
    package func applied(to before: DeviceKindness) -> DeviceKindness {
        var kindness = before
        if case .now(let hours) = quietHours { kindness.quietHours = hours }
        if case .now(let isSo) = isUnlessConnected { kindness.isUnlessConnected = isSo }
        return kindness
    }
}

extension DeviceRegistry {
    /// Registers a device as before, but for what it says itself.
    package func register(
        _ device: Device, named naming: DeviceNaming, at now: Timestamp
    ) async throws -> DeviceVersion {
        try await register(device, named: naming, .asBefore, at: now)
    }

    /// Registers a device by its own ID.
    package func register(_ device: Device, at now: Timestamp) async throws -> DeviceVersion {
        try await register(device, named: .device, at: now)
    }
}
