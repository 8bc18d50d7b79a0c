import RelayModel
import Storage

/// The phones of a sandbox, with the pushes that they received.
struct PhoneAdministration: AdministrationTable {
    let registry: any ContainerRegistry & DeviceRegistry
    /// The pushes that the phones received; `nil` unless the relay runs in a sandbox.
    let phones: SandboxPushes?

    /// The maximum number of phones in the answer; a sandbox has three, and those that a seed adds.
    private static let mostPhones = 200

    var routes: [AdministrationRoute] {
        [AdministrationRoute(.listPhones, patience: .watched, respond: list)]
    }

    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        guard let phones else {
            throw APIError(.notFound, "only a sandbox (belfry dev) has phones")
        }
        let hold = try request.number("hold") ?? 0
        guard hold <= EventAdministration.longestHold else {
            throw APIError(
                .badRequest, "hold: must be 0 to \(EventAdministration.longestHold) seconds")
        }
        let page = try await phones.next(
            after: request.query["after"], hold: .seconds(Int64(hold)))
        let devices = try await devices()
        var owners: [String: DeviceVersion] = [:]
        for device in devices { owners[device.device.token.rawValue] = device }
        var answer: JSONObject = [
            "phones": .array(devices.map { .object($0.named) }),
            "pushes": .array(
                page.pushes.map { number, push in
                    var object: JSONObject = ["number": .string(String(number))]
                    object.members += (owners[push.token]?.named ?? [:]).members
                    object.members += push.json.members
                    return .object(object)
                }),
            "after": .string(page.place),
        ]
        if page.isRestarted { answer["restarted"] = true }
        return RelayAnswer(json: .object(answer))
    }

    /// Returns the devices that use the gateway, of all containers; a sandbox has one container.
    private func devices() async throws -> [DeviceVersion] {
        var found: [DeviceVersion] = []
        for settings in try await registry.containers() where found.count < Self.mostPhones {
            let page = try await registry.devicePage(
                of: settings.key, owner: nil, after: 0,
                PageBounds(rows: Self.mostPhones - found.count))
            found += page.elements.filter { $0.device.gateway == .apns }
        }
        return found
    }
}

extension DeviceVersion {
    /// The members that name the device and its user.
    var named: JSONObject {
        [
            "deviceID": .string(device.id.rawValue),
            "userRecordName": .string(device.owner.rawValue),
        ]
    }
}

extension SandboxPushes.Push {
    /// The push as JSON, without the device token.
    var json: JSONObject {
        var object: JSONObject = [
            "at": .string(at.iso8601), "deliveryID": .string(deliveryID),
            "pushType": .string(headers["apns-push-type"] ?? "alert"),
            "priority": .integer(headers["apns-priority"].flatMap { Int64($0) } ?? 10),
        ]
        object["topic"] = headers["apns-topic"].map { .string($0) }
        object["collapseID"] = headers["apns-collapse-id"].map { .string($0) }
        object["expiration"] = headers["apns-expiration"].flatMap { Int64($0) }
            .flatMap { $0 > 0 ? .string(Timestamp(seconds: $0).iso8601) : nil }
        object["payload"] =
            (try? JSONValue(parsing: payload)) ?? .string(String(decoding: payload, as: UTF8.self))
        return object
    }
}
