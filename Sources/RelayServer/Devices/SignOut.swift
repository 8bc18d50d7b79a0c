import RelayModel
import Storage

/// Identifies one of a user's own devices.
struct DeviceChoice: Sendable {
    /// The device's ID, or its client's ID.
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

    /// Reads the same members; all may be missing.
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

    /// The member by which the device was looked for.
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

    /// Forgets the chosen device if it is the user's own, and all devices of a chosen client.
    ///
    /// - Returns: The ID of the first device that was forgotten; `nil` if there was none.
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

extension RelayRequest {
    /// Returns the device that a parameter of the query names; `nil` if it is missing or empty, as
    /// in the calls of pages that add a parameter whether they have a value or not.
    ///
    /// - Throws: 400 if it can name no device.
    func deviceParameter(_ name: String) throws(APIError) -> DeviceID? {
        try query[name]?.isEmpty == true ? nil : parameter(name)
    }
}
