import RelayModel
import Storage

/// Subscriptions and devices, for whoever has to help a user: list, delete.
struct SubscriptionAdministration: AdministrationTable {
    let dependencies: RelayDependencies

    init(_ dependencies: RelayDependencies) {
        self.dependencies = dependencies
    }

    var routes: [RelayRoute] {
        [
            route("GET", "/subscriptions", respond: list),
            route(
                "DELETE", "/subscriptions/{database}/{user}/{subscription}", respond: delete),
            route("GET", "/devices", respond: devices),
            route("DELETE", "/devices/{device}", respond: forget),
        ]
    }

    /// Subscriptions of the container by serial, after the parameter `after`, at most `limit`;
    /// with `user` those of one user.
    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await key(request)
        let user: UserID? = try request.parameter("user")
        let limit = try request.limit()
        var serial = try request.number("after") ?? 0
        let head = try await dependencies.log.head()
        var found: [SubscriptionVersion] = []
        var isComplete = false
        while found.count < limit, !isComplete {
            let page = try await dependencies.registry.subscriptions(
                activeAt: head, after: serial, limit: 1000)
            isComplete = page.count < 1000
            for version in page where found.count < limit {
                serial = version.serial
                let subscription = version.subscription
                guard subscription.container == container,
                    user == nil || subscription.owner == user
                else { continue }
                found.append(version)
            }
        }
        var answer: JSONObject = ["subscriptions": .array(found.map(Self.json))]
        if found.count == limit { answer["after"] = .string(String(serial)) }
        return RelayAnswer(json: .object(answer))
    }

    private func delete(_ request: RelayRequest) async throws -> RelayAnswer {
        let owner = SubscriptionOwner(
            container: try await key(request), database: try request.choice("database"),
            user: try request.identifier("user"))
        let id: SubscriptionID = try request.identifier("subscription")
        let outcomes = try await dependencies.registry.edit(
            [.delete(id)], of: owner, atomicity: .independent, at: request.receivedAt)
        guard case .deleted? = outcomes.first else {
            throw APIError(.notFound, "there is no subscription \"\(id)\" of \"\(owner.user)\"")
        }
        return RelayAnswer(json: ["subscriptionID": .string(id.rawValue), "deleted": true])
    }

    private func devices(_ request: RelayRequest) async throws -> RelayAnswer {
        let devices = try await dependencies.registry.devices(
            of: try await key(request), owner: try request.parameter("user"),
            limit: try request.limit())
        return RelayAnswer(json: ["devices": .array(devices.map(Self.json))])
    }

    private func forget(_ request: RelayRequest) async throws -> RelayAnswer {
        let id: DeviceID = try request.identifier("device")
        guard
            try await dependencies.registry.forgetDevice(
                id, of: try await key(request), at: request.receivedAt)
        else { throw APIError(.notFound, "there is no device \"\(id)\"") }
        return RelayAnswer(json: ["deviceID": .string(id.rawValue), "deleted": true])
    }

    private static func json(_ version: SubscriptionVersion) -> JSONValue {
        var object = version.json
        object["serial"] = .string(String(version.serial))
        object["database"] = .string(version.subscription.database.rawValue)
        object["userRecordName"] = .string(version.subscription.owner.rawValue)
        return .object(object)
    }

    /// A device with its token hidden.
    private static func json(_ version: DeviceVersion) -> JSONValue {
        let device = version.device
        var object: JSONObject = [
            "deviceID": .string(device.id.rawValue),
            "userRecordName": .string(device.owner.rawValue),
            "gateway": .string(device.gateway.rawValue),
            "apnsEnvironment": .string(device.gatewayEnvironment.rawValue),
            "apnsToken": .string(device.token.description),
            "registeredAt": .string(version.registeredAt.iso8601),
            "activationPosition": .string(version.activation.description),
            "serial": .string(String(version.serial)),
        ]
        object["topic"] = device.topic.map { .string($0) }
        return .object(object)
    }
}
