import RelayModel
import Storage

/// CloudKit's calls on device tokens.
///
/// They live under `/device/1/…`; Apple's text says `/database/1/…`, and some of its readers add
/// the database, so all three are answered.
struct TokenRoutes: Sendable {
    private let dependencies: RelayDependencies
    private let callers: CallerLookup

    init(_ dependencies: RelayDependencies) {
        self.dependencies = dependencies
        callers = CallerLookup(dependencies)
    }

    var routes: [RelayRoute] {
        [
            "/device/1/{container}/{environment}", "/database/1/{container}/{environment}",
            RecordCalls.prefix,
        ].flatMap { place in
            let prefix = "\(place)/tokens"
            return [
                RelayRoute(.client, "POST", "\(prefix)/create", respond: create),
                RelayRoute(.client, "POST", "\(prefix)/register", respond: register),
                RelayRoute(.client, "POST", "\(prefix)/unregister", respond: unregister),
            ]
        }
    }

    /// Makes up a token for a client that has none from a gateway, opens a web courier for it, and
    /// registers it: CloudKit JS does not call `register` for the container in which it created a
    /// token.
    private func create(_ request: RelayRequest) async throws -> RelayAnswer {
        let admitted = try await callers.admit(request, database: .public)
        let address = CourierAddress(RandomIdentifiers(dependencies.randomBytes))
        let device = try TokenRegistration(request.jsonBody(), settings: admitted.settings)
            .courier(
                of: try admitted.user(), token: address.token,
                fallbackID: request.query["clientId"])
        _ = try await dependencies.registry.createCourier(for: device, at: request.receivedAt)
        return RelayAnswer(json: [
            "apnsEnvironment": .string(device.gatewayEnvironment.rawValue),
            "apnsToken": .string(address.token.rawValue),
            "webcourierURL": .string("\(courierURL(request))/courier/1/\(address.secret)"),
        ]).keepingUserToken(of: request)
    }

    /// Registers the token of a device for the user who is signed in on it, be it a gateway's or
    /// one that `create` made up, in this container or another one: one courier serves several.
    private func register(_ request: RelayRequest) async throws -> RelayAnswer {
        let admitted = try await callers.admit(request, database: .public)
        let user = try admitted.user()
        var device = try TokenRegistration(request.jsonBody(), settings: admitted.settings)
            .device(of: user, fallbackID: request.query["clientId"])
        if try await dependencies.registry.courier(device.token) != nil { device.beCourier() }
        let version = try await dependencies.registry.register(device, at: request.receivedAt)
        return answer(version, to: request).keepingUserToken(of: request)
    }

    /// CloudKit's own answer is empty, and CloudKit JS listens for notifications of a further
    /// container only if it cannot read the answer as JSON.
    private func answer(_ version: DeviceVersion, to request: RelayRequest) -> RelayAnswer {
        let isCloudKitJS =
            request.query["ckjsVersion"] != nil || request.query["ckjsBuildVersion"] != nil
        guard !isCloudKitJS else { return RelayAnswer(status: 200) }
        return RelayAnswer(json: [
            "apnsEnvironment": .string(version.device.gatewayEnvironment.rawValue),
            "deviceID": .string(version.device.id.rawValue),
            "activationPosition": .string(version.activation.description),
        ])
    }

    /// Ends one of the user's own devices, as at sign-out.
    private func unregister(_ request: RelayRequest) async throws -> RelayAnswer {
        let admitted = try await callers.admit(request, database: .public)
        let choice = try DeviceChoice(request.jsonBody())
        let desk = SignOutDesk(dependencies)
        guard
            let id = try await desk.forget(
                choice, of: try admitted.user(), in: admitted.settings.key,
                at: request.receivedAt)
        else {
            throw APIError(.notFound, "the user has no device with \(choice.field)")
        }
        return RelayAnswer(json: ["deviceID": .string(id.rawValue), "deleted": true])
            .keepingUserToken(of: request)
    }

    /// What the courier's URL begins with: the configured address, else the one by which the client
    /// reached us.
    private func courierURL(_ request: RelayRequest) -> String {
        if let url = dependencies.courierURL { return url }
        guard let authority = request.authority, !authority.isEmpty else {
            return dependencies.publicURL
        }
        let forwarded = request.header("X-Forwarded-Proto")
        let scheme = forwarded == "https" || forwarded == "http" ? forwarded : nil
        return "\(scheme ?? dependencies.scheme)://\(authority)"
    }

    static func gatewayEnvironment(_ body: JSONReader) throws -> GatewayEnvironment {
        try body.require("apnsEnvironment", try body.choice("apnsEnvironment"))
    }
}

extension Device {
    /// The topic of pushes that no application of the gateway's gets.
    static let courierTopic = "courier"

    /// Makes it a device that fetches.
    mutating func beCourier() {
        gateway = .courier
        topic = Self.courierTopic
    }
}

/// The body of `tokens/register` and `tokens/create`.
struct TokenRegistration {
    private let body: JSONReader
    private let settings: ContainerSettings

    init(_ body: JSONReader, settings: ContainerSettings) {
        self.body = body
        self.settings = settings
    }

    /// The device that it registers for `owner`.
    ///
    /// Its ID is `deviceID`, else `clientId` of the body or of the query, else made of the token,
    /// so that the same token always names the same device.
    ///
    /// - Throws: `JSONContractError`, or 400 for a topic that is not the container's.
    func device(of owner: UserID, fallbackID: String?) throws -> Device {
        try body.allowOnly([
            "apnsEnvironment", "apnsToken", "clientId", "clientID", "deviceID", "topic",
            // A client sends back what `create` answered.
            "webcourierURL",
        ])
        let environment = try TokenRoutes.gatewayEnvironment(body)
        let token: DeviceToken = try body.require("apnsToken", try body.deviceToken())
        return Device(
            id: try deviceID(token: token, fallbackID: fallbackID), container: settings.key,
            owner: owner, gatewayEnvironment: environment, token: token, topic: try topic())
    }

    /// The courier's device that it creates for `owner`, with a token that was just made up.
    ///
    /// - Throws: `JSONContractError`.
    func courier(of owner: UserID, token: DeviceToken, fallbackID: String?) throws -> Device {
        try body.allowOnly(["apnsEnvironment", "clientId", "clientID", "deviceID"])
        var device = Device(
            id: try deviceID(token: token, fallbackID: fallbackID), container: settings.key,
            owner: owner, gatewayEnvironment: try TokenRoutes.gatewayEnvironment(body),
            token: token)
        device.beCourier()
        return device
    }

    private func deviceID(token: DeviceToken, fallbackID: String?) throws -> DeviceID {
        for name in ["deviceID", "clientId", "clientID"] {
            if let id: DeviceID = try body.identifier(name) { return id }
        }
        if let fallbackID, let id = DeviceID(rawValue: fallbackID) { return id }
        let digits = Secrets.verifier(of: token.rawValue).prefix(32)
        guard let id = DeviceID(rawValue: "token-\(digits)") else {
            preconditionFailure("a prefix and 32 digits are a device ID")
        }
        return id
    }

    private func topic() throws -> String? {
        guard let topic = try body.string("topic") else { return nil }
        guard settings.topics.contains(topic) else {
            throw body.failure(
                "topic",
                "\"\(topic.shortened)\" is none of this container's topics: "
                    + settings.topics.joined(separator: ", "))
        }
        return topic
    }
}

extension JSONReader {
    /// The device token in `apnsToken`, in hexadecimal digits, or in base64 as CloudKit's native
    /// clients write the 32 bytes that APNs gave them.
    ///
    /// Of base64 only that length is taken: a mistyped digit must not make another token.
    ///
    /// - Throws: `JSONContractError` if it is neither.
    func deviceToken() throws(JSONContractError) -> DeviceToken? {
        guard let text = try string("apnsToken") else { return nil }
        if let token = DeviceToken(rawValue: text) { return token }
        if let bytes = Base64.decode(text), bytes.count == 32,
            let token = DeviceToken(rawValue: Hexadecimal.encode(bytes))
        {
            return token
        }
        throw failure("apnsToken", "not \(DeviceToken.rule); or 32 bytes in base64")
    }
}
