import Delivery
import RelayModel
import Storage

/// CloudKit's calls for device tokens.
///
/// CloudKit serves them under `/device/1/…`. Apple's documentation says `/database/1/…`, and some
/// clients add the database. So all three forms are answered.
struct TokenRoutes: Sendable {
    let clients: ClientAdmission
    let registry: any DeviceRegistry & CourierQueue
    /// The beginning of couriers' URLs.
    let courierBase: CourierBase
    /// The shard of the couriers, which is part of their URLs, so that any relay can be polled.
    ///
    /// It is `nil` if the store cannot be one of several.
    let shard: String?
    let identifiers: RandomIdentifiers

    var routes: [RelayRoute] {
        [
            "/device/1/{container}/{environment}", "/database/1/{container}/{environment}",
            RelayRoute.database,
        ].flatMap { place in
            let prefix = "\(place)/tokens"
            return [
                clients.route("POST", "\(prefix)/create", in: .onlyPublic, respond: create),
                clients.route("POST", "\(prefix)/register", in: .onlyPublic, respond: register),
                clients.route(
                    "POST", "\(prefix)/unregister", in: .onlyPublic, respond: unregister),
            ]
        }
    }

    /// Creates a token for a client that has none from a gateway, opens a web courier, and
    /// registers the token.
    ///
    /// CloudKit JS does not call `register` for the container in which it created a token.
    private func create(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let ticket = CourierAddress.newTicket(identifiers)
        let address = CourierAddress(ticket: ticket)
        let body = try request.jsonBody()
        let (device, naming) = try TokenRegistration(body, settings: admitted.settings)
            .courier(
                of: try admitted.user(), token: address.token,
                fallbackID: request.deviceParameter("clientId"))
        _ = try await registry.createCourier(
            for: device, named: naming, at: request.receivedAt)
        return RelayAnswer(json: [
            "apnsEnvironment": try Self.written("apnsEnvironment", body),
            "apnsToken": .string(ticket.rawValue),
            "webcourierURL": .string(courierURL(of: address, request)),
        ])
    }

    /// Registers a device's token for the user who is signed in on the device.
    ///
    /// The token comes from a gateway or from `create`, in this container or another one: one
    /// courier may serve several.
    private func register(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let user = try admitted.user()
        let body = try request.jsonBody()
        let registration = TokenRegistration(body, settings: admitted.settings)
        let written = try registration.token()
        let known = try await knownCourier(written, user, admitted.settings.key)
        if known == nil {
            try refuseUnknownCourier(body)
            // A server's key acts for no user, and a token belongs to the last user who registered
            // it. With the key, a server could take devices from their users.
            if case .signature = admitted.caller.proof { throw Self.noDeviceOfServer }
        }
        let (named, naming) = try registration.device(
            of: user, token: known?.token ?? written,
            fallbackID: request.deviceParameter("clientId"))
        var device = named
        if known != nil { device.beCourier() }
        let version = try await registry.register(
            device, named: naming, try registration.sparing(), at: request.receivedAt)
        guard Self.readsAnswers(request) else {
            return RelayAnswer(status: 200)
        }
        var answer: JSONObject = [
            "apnsEnvironment": try Self.written("apnsEnvironment", body),
            "apnsToken": try Self.written("apnsToken", body),
        ]
        answer["webcourierURL"] = known?.address.map { .string(courierURL(of: $0, request)) }
        answer["deviceID"] = .string(version.device.id.rawValue)
        answer["quietHours"] = version.device.kindness.quietHours?.json
        if version.device.kindness.isUnlessConnected { answer["unlessConnected"] = true }
        answer["badge"] = version.badge.map { .integer($0) }
        answer["activationPosition"] = .string(version.activation.description)
        return RelayAnswer(json: .object(answer))
    }

    private static let noDeviceOfServer = APIError(
        .accessDenied,
        "apnsToken: a server-to-server key can have only web couriers as devices; create one with "
            + "tokens/create")

    /// Returns a member as the client wrote it, because the client may compare it with what it
    /// sent.
    private static func written(_ name: String, _ body: JSONReader) throws -> JSONValue {
        .string(try body.require(name, try body.string(name)))
    }

    /// Returns the courier that a client means by a token; `nil` if the token is a gateway's.
    ///
    /// It is the courier of a ticket, or one from before tickets existed, whose URL is unknown. The
    /// latter token is visible to the operators of each container in which the courier is
    /// registered. So only its own user can register it again, and it cannot be taken from another
    /// user.
    private func knownCourier(
        _ written: DeviceToken, _ user: UserID, _ container: ContainerKey
    ) async throws -> (token: DeviceToken, address: CourierAddress?)? {
        let address = CourierAddress(ticket: written)
        if try await registry.courier(address.token) != nil {
            return (address.token, address)
        }
        guard try await registry.courier(written) != nil else { return nil }
        let own = try await registry.devices(of: container, owner: user, limit: 10_000)
        guard own.contains(where: { $0.device.token == written }) else {
            throw APIError(
                .badRequest,
                "apnsToken: it is not a token from an answer of tokens/create; create one there")
        }
        return (written, nil)
    }

    /// Refuses the token of a courier that is in another shard or has ended.
    ///
    /// Such a token is unknown here, and would be taken for a gateway's, which never delivers
    /// anything.
    private func refuseUnknownCourier(_ body: JSONReader) throws(APIError) {
        guard case .string(let url)? = body.object["webcourierURL"], !url.isEmpty else { return }
        if let shard, let other = QueryParameters(target: url)["shard"], other != shard {
            throw APIError(
                .badRequest,
                "webcourierURL: the courier belongs to the shard \(other.shortened), but this "
                    + "container is in \(shard): create a token for it with tokens/create")
        }
        throw APIError(
            .badRequest,
            "webcourierURL: this courier no longer exists: create a token with tokens/create")
    }

    /// Returns whether the client reads the answer.
    ///
    /// CloudKit JS 1 listens for notifications of a second container only if it cannot parse the
    /// answer as JSON. Version 2 and all other clients read in it where to listen.
    private static func readsAnswers(_ request: RelayRequest) -> Bool {
        guard let version = request.query["ckjsVersion"] else {
            return request.query["ckjsBuildVersion"] == nil
        }
        return version != "1" && !version.hasPrefix("1.")
    }

    /// Ends one of the user's own devices, as at sign-out.
    private func unregister(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let choice = try DeviceChoice(request.jsonBody())
        let service = SignOutService(registry: registry)
        guard
            let id = try await service.forget(
                choice, of: try admitted.user(), in: admitted.settings.key,
                at: request.receivedAt)
        else {
            throw APIError(.notFound, "the user has no device with \(choice.field)")
        }
        return RelayAnswer(json: ["deviceID": .string(id.rawValue), "deleted": true])
    }

    private func courierURL(of address: CourierAddress, _ request: RelayRequest) -> String {
        "\(courierURL(request))/courier/1/\(address.secret)"
            + (shard.map { "?shard=\($0)" } ?? "")
    }

    /// Returns the beginning of the courier's URL.
    private func courierURL(_ request: RelayRequest) -> String {
        courierBase.url(
            authority: request.authority, reached: request.peer?.reached,
            forwardedScheme: request.peer?.isTrustedProxy == true
                ? request.header("X-Forwarded-Proto") : nil)
    }

    static func gatewayEnvironment(_ body: JSONReader) throws -> GatewayEnvironment {
        let read: GatewayEnvironment? = try body.anyCase("apnsEnvironment")
        return try body.require("apnsEnvironment", read)
    }
}

extension Device {
    /// The topic of couriers' devices, which no application at a gateway has.
    static let courierTopic = "courier"

    /// Turns the device into a web courier's.
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

    /// Returns the token to register, as the client knows it.
    ///
    /// - Throws: `JSONContractError`.
    func token() throws -> DeviceToken {
        try body.allowOnly(
            [
                "apnsEnvironment", "apnsToken", "clientId", "clientID", "deviceID", "topic",
                // A client sends back what `create` answered.
                "webcourierURL",
            ] + Self.sparingMembers)
        _ = try TokenRoutes.gatewayEnvironment(body)
        return try body.require("apnsToken", try body.deviceToken())
    }

    /// Returns the device to register for `owner`, and what its ID identifies.
    ///
    /// The ID is `deviceID`, or else `clientId` of the body or of the query. Without either it is
    /// computed from the token, so that the same token always identifies the same device.
    ///
    /// - Throws: `JSONContractError`, or the error 400 for a topic that is not the container's.
    func device(
        of owner: UserID, token: DeviceToken, fallbackID: DeviceID?
    ) throws -> (Device, DeviceNaming) {
        let (id, naming) = try deviceID(token: token, fallbackID: fallbackID)
        let device = Device(
            id: id, container: settings.key, owner: owner,
            gatewayEnvironment: try TokenRoutes.gatewayEnvironment(body), token: token,
            topic: try topic())
        return (device, naming)
    }

    /// Returns the courier's device to create for `owner`, with a new token.
    ///
    /// - Throws: `JSONContractError`.
    func courier(
        of owner: UserID, token: DeviceToken, fallbackID: DeviceID?
    ) throws -> (Device, DeviceNaming) {
        try body.allowOnly(["apnsEnvironment", "clientId", "clientID", "deviceID"])
        let environment = try TokenRoutes.gatewayEnvironment(body)
        let (id, naming) = try deviceID(token: token, fallbackID: fallbackID)
        var device = Device(
            id: id, container: settings.key, owner: owner, gatewayEnvironment: environment,
            token: token)
        device.beCourier()
        return (device, naming)
    }

    /// The members that say when the device does not want pushes, and what its badge shows.
    private static let sparingMembers = ["quietHours", "unlessConnected", "badge"]
    /// The range of badges.
    private static let badges: ClosedRange<Int64> = 0...1_000_000

    /// Returns when the device does not want pushes.
    ///
    /// An absent member keeps what an earlier registration said, and `null` removes it.
    ///
    /// - Throws: `JSONContractError`, also for an unknown time zone.
    func sparing() throws(JSONContractError) -> DeviceSparing {
        var sparing = DeviceSparing()
        sparing.badge = try body.integer("badge")
        if let badge = sparing.badge, !Self.badges.contains(badge) {
            throw body.failure("badge", "must be 0 to \(Self.badges.upperBound)")
        }
        if body.object["unlessConnected"] == .null {
            sparing.isUnlessConnected = .now(false)
        } else if let isSo = try body.bool("unlessConnected") {
            sparing.isUnlessConnected = .now(isSo)
        }
        switch body.object["quietHours"] {
        case nil: break
        case .null: sparing.quietHours = .now(nil)
        case let json?:
            let path = body.path(of: "quietHours")
            let hours = try QuietHours(json: json, path: path)
            guard ZoneClock.has(hours.timeZone) else {
                throw JSONContractError(
                    path: "\(path).timeZone",
                    reason:
                        "\"\(hours.timeZone.shortened)\" is unknown; allowed are the names of IANA "
                        + "time zones, such as \"Europe/Zurich\", and \"UTC\"")
            }
            sparing.quietHours = .now(hours)
        }
        return sparing
    }

    private func deviceID(
        token: DeviceToken, fallbackID: DeviceID?
    ) throws -> (DeviceID, DeviceNaming) {
        if let id: DeviceID = try body.identifier("deviceID") { return (id, .device) }
        for name in ["clientId", "clientID"] {
            if let id: DeviceID = try body.identifier(name) { return (id, .client) }
        }
        if let fallbackID { return (fallbackID, .client) }
        let digits = Secrets.verifier(of: token.rawValue).prefix(32)
        guard let id = DeviceID(rawValue: "token-\(digits)") else {
            preconditionFailure("a prefix and 32 digits are a device ID")
        }
        return (id, .device)
    }

    private func topic() throws -> String? {
        guard let topic = try body.string("topic") else { return nil }
        // Compared by bytes, as the gateway does: U+212A equals K as a `Character`. A refusal of a
        // topic by the gateway would halt all pushes to it.
        guard settings.topics.contains(where: { $0.utf8.elementsEqual(topic.utf8) }) else {
            throw body.failure(
                "topic",
                "\"\(topic.shortened)\" is not one of this container's topics: "
                    + settings.topics.joined(separator: ", "))
        }
        return topic
    }
}

extension JSONReader {
    /// Returns the device token in `apnsToken`; `nil` if it is absent.
    ///
    /// It is in hexadecimal digits, or in base64, in which CloudKit's native clients write the 32
    /// bytes from APNs. Base64 is accepted only with that length, so that a mistyped digit does not
    /// make another token.
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
        throw failure("apnsToken", "is not \(DeviceToken.rule), or 32 bytes in base64")
    }
}
