import RelayModel
import Storage

/// Which of a user's own devices is meant.
struct DeviceChoice: Sendable {
    /// The device's ID, or its client's.
    let deviceID: DeviceID?
    private let isClient: Bool
    private let courier: DeviceToken?
    /// The device's token.
    let token: DeviceToken?

    /// Reads `deviceID`, `clientId` or `apnsToken`; one of them is required.
    ///
    /// - Throws: `JSONContractError`.
    init(_ body: JSONReader) throws {
        try body.allowOnly(["apnsEnvironment", "apnsToken", "clientId", "clientID", "deviceID"])
        try self.init(optionalIn: body)
        guard deviceID != nil || token != nil else {
            throw body.failure("deviceID", "one of deviceID, clientId and apnsToken is required")
        }
    }

    /// Reads the same members where they may be missing.
    ///
    /// - Throws: `JSONContractError`.
    init(optionalIn body: JSONReader) throws {
        let named: DeviceID? = try body.identifier("deviceID")
        let client: DeviceID? = try body.identifier("clientId")
        let clientToo: DeviceID? = try body.identifier("clientID")
        deviceID = named ?? client ?? clientToo
        isClient = named == nil
        token = try body.deviceToken()
        courier = token.map { CourierAddress(ticket: $0).token }
    }

    /// Which member it was found by.
    var field: String { deviceID == nil ? "this apnsToken" : "this deviceID" }

    func fits(_ device: Device) -> Bool {
        let isNamed =
            deviceID.map { isClient ? device.id.isOfSameClient(as: $0) : device.id == $0 } ?? true
        return isNamed
            && token.map { $0 == device.token || courier == device.token } ?? true
    }
}

/// Ends devices for their users.
struct SignOutService: Sendable {
    let registry: any DeviceRegistry

    /// Forgets the device that is meant, if it is the user's own, with every further one of the
    /// client that is meant; returns the first's ID.
    func forget(
        _ choice: DeviceChoice, of user: UserID, in container: ContainerKey, at now: Timestamp
    ) async throws -> DeviceID? {
        let devices = try await registry.devices(
            of: container, owner: user, limit: 10_000)
        var first: DeviceID?
        for device in devices.map(\.device) where choice.fits(device) {
            let isForgotten = try await registry.forgetDevice(
                device.id, of: user, in: container, at: now)
            if isForgotten { first = first ?? device.id }
        }
        return first
    }
}
