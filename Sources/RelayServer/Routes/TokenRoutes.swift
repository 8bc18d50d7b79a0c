import RelayModel
import Storage

/// CloudKit's calls on device tokens.
///
/// They live under `/device/1/…`; Apple's text says `/database/1/…`, so both are answered.
struct TokenRoutes: Sendable {
    private let dependencies: RelayDependencies
    private let callers: CallerLookup

    init(_ dependencies: RelayDependencies) {
        self.dependencies = dependencies
        callers = CallerLookup(dependencies)
    }

    var routes: [RelayRoute] {
        ["device", "database"].flatMap { module in
            let prefix = "/\(module)/1/{container}/{environment}/tokens"
            return [
                RelayRoute(.client, "POST", "\(prefix)/create", respond: create),
                RelayRoute(.client, "POST", "\(prefix)/register", respond: register),
            ]
        }
    }

    /// Makes up a token for a client that has none from a gateway.
    ///
    /// It is 64 hexadecimal digits, which are base64 as well: clients decode it as either. There is
    /// no web courier yet that it could be an address of, so no `webcourierURL` is claimed, and
    /// nothing is registered.
    private func create(_ request: RelayRequest) async throws -> RelayAnswer {
        let admitted = try await callers.admit(request, database: nil)
        _ = try admitted.user()
        let body = try request.jsonBody()
        try body.allowOnly(["apnsEnvironment", "clientId", "clientID"])
        let environment = try Self.gatewayEnvironment(body)
        let token = RandomIdentifiers(dependencies.randomBytes).digits(bytes: 32)
        return RelayAnswer(json: [
            "apnsEnvironment": .string(environment.rawValue), "apnsToken": .string(token),
        ]).keepingUserToken(of: request)
    }

    /// Registers the token of a device for the user who is signed in on it.
    private func register(_ request: RelayRequest) async throws -> RelayAnswer {
        let admitted = try await callers.admit(request, database: nil)
        let device = try TokenRegistration(request.jsonBody(), settings: admitted.settings)
            .device(of: try admitted.user(), fallbackID: request.query["clientId"])
        let version = try await dependencies.registry.register(device, at: request.receivedAt)
        return RelayAnswer(json: [
            "apnsEnvironment": .string(device.gatewayEnvironment.rawValue),
            "deviceID": .string(device.id.rawValue),
            "activationPosition": .string(version.activation.description),
        ]).keepingUserToken(of: request)
    }

    static func gatewayEnvironment(_ body: JSONReader) throws -> GatewayEnvironment {
        try body.require("apnsEnvironment", try body.choice("apnsEnvironment"))
    }
}

/// The body of `tokens/register`.
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
        ])
        let environment = try TokenRoutes.gatewayEnvironment(body)
        let token: DeviceToken = try body.require("apnsToken", try body.identifier("apnsToken"))
        return Device(
            id: try deviceID(token: token, fallbackID: fallbackID), container: settings.key,
            owner: owner, gatewayEnvironment: environment, token: token, topic: try topic())
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
