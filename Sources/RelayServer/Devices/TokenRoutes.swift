import Delivery
import RelayModel
import Storage

/// CloudKit's calls on device tokens.
///
/// They live under `/device/1/…`; Apple's text says `/database/1/…`, and some of its readers add
/// the database, so all three are answered.
struct TokenRoutes: Sendable {
    let clients: ClientAdmission
    let registry: any DeviceRegistry & CourierQueue
    /// What URLs of couriers begin with.
    let courierBase: CourierBase
    /// The shard in which couriers are, for whichever relay is polled; `nil` of a store that cannot
    /// be one of several.
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

    /// Makes up a token for a client that has none from a gateway, opens a web courier for it, and
    /// registers it: CloudKit JS does not call `register` for the container in which it created a
    /// token.
    private func create(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let ticket = CourierAddress.newTicket(identifiers)
        let address = CourierAddress(ticket: ticket)
        let body = try request.jsonBody()
        let (device, naming) = try TokenRegistration(body, settings: admitted.settings)
            .courier(
                of: try admitted.user(), token: address.token,
                fallbackID: request.query["clientId"])
        _ = try await registry.createCourier(
            for: device, named: naming, at: request.receivedAt)
        return RelayAnswer(json: [
            "apnsEnvironment": try Self.written("apnsEnvironment", body),
            "apnsToken": .string(ticket.rawValue),
            "webcourierURL": .string(courierURL(of: address, request)),
        ])
    }

    /// Registers the token of a device for the user who is signed in on it, be it a gateway's or
    /// one that `create` made up, in this container or another one: one courier serves several.
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
            // It speaks for no user, and a token goes to whoever registered it last: whoever has
            // the key would take users' devices from them.
            if case .signature = admitted.caller.proof { throw Self.noDeviceOfServer }
        }
        let (named, naming) = try registration.device(
            of: user, token: known?.token ?? written, fallbackID: request.query["clientId"])
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
        "apnsToken: to a server-to-server key no device belongs but couriers, which tokens/create "
            + "makes")

    /// A member as the client wrote it, which may compare it with what it sent.
    private static func written(_ name: String, _ body: JSONReader) throws -> JSONValue {
        .string(try body.require(name, try body.string(name)))
    }

    /// The courier that a client means by a token: the one of a ticket, or one of the time before
    /// tickets, whose URL nobody can tell; `nil` if the token is a gateway's.
    ///
    /// The latter is what operators of each container see in which a courier is registered. So it
    /// is only registered anew by its user, and takes nobody else's device away.
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
                "apnsToken: it is none that tokens/create answered with: create one there")
        }
        return (written, nil)
    }

    /// Refuses the token of a courier of another shard, or of one that has ended: nobody here knows
    /// it, and it would be taken for a gateway's, from which nothing ever comes.
    private func refuseUnknownCourier(_ body: JSONReader) throws(APIError) {
        guard case .string(let url)? = body.object["webcourierURL"], !url.isEmpty else { return }
        if let shard, let other = QueryParameters(target: url)["shard"], other != shard {
            throw APIError(
                .badRequest,
                "webcourierURL: it is a courier of the shard \(other.shortened), and this "
                    + "container lies in \(shard): create a token for it with tokens/create")
        }
        throw APIError(
            .badRequest,
            "webcourierURL: there is no such courier any more: create a token with tokens/create")
    }

    /// CloudKit JS 1 listens for notifications of a further container only if it cannot read the
    /// answer as JSON; from version 2 on it reads in it where to listen, as everybody else does.
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

    /// What the courier's URL begins with.
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

    /// The token that it registers, as the client knows it.
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

    /// The device that it registers for `owner`, and what its ID names.
    ///
    /// Its ID is `deviceID`, else `clientId` of the body or of the query, else made of the token,
    /// so that the same token always names the same device.
    ///
    /// - Throws: `JSONContractError`, or 400 for a topic that is not the container's.
    func device(
        of owner: UserID, token: DeviceToken, fallbackID: String?
    ) throws -> (Device, DeviceNaming) {
        let (id, naming) = try deviceID(token: token, fallbackID: fallbackID)
        let device = Device(
            id: id, container: settings.key, owner: owner,
            gatewayEnvironment: try TokenRoutes.gatewayEnvironment(body), token: token,
            topic: try topic())
        return (device, naming)
    }

    /// The courier's device that it creates for `owner`, with a token that was just made up.
    ///
    /// - Throws: `JSONContractError`.
    func courier(
        of owner: UserID, token: DeviceToken, fallbackID: String?
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

    /// The members that say how the device wants to be spared, and what its icon shows.
    private static let sparingMembers = ["quietHours", "unlessConnected", "badge"]
    /// What an icon may show: more than anybody reads, and far from what cannot be counted on.
    private static let badges: ClosedRange<Int64> = 0...1_000_000

    /// What it says of how the device wants to be spared: a member that is absent leaves what an
    /// earlier registration said, and `null` takes it back.
    ///
    /// - Throws: `JSONContractError`, also for a time zone that nobody knows.
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
                    reason: "\"\(hours.timeZone.shortened)\" is unknown; allowed are the names of "
                        + "the IANA's time zones, as \"Europe/Zurich\", and \"UTC\"")
            }
            sparing.quietHours = .now(hours)
        }
        return sparing
    }

    private func deviceID(
        token: DeviceToken, fallbackID: String?
    ) throws -> (DeviceID, DeviceNaming) {
        if let id: DeviceID = try body.identifier("deviceID") { return (id, .device) }
        for name in ["clientId", "clientID"] {
            if let id: DeviceID = try body.identifier(name) { return (id, .client) }
        }
        if let fallbackID, let id = DeviceID(rawValue: fallbackID) { return (id, .client) }
        let digits = Secrets.verifier(of: token.rawValue).prefix(32)
        guard let id = DeviceID(rawValue: "token-\(digits)") else {
            preconditionFailure("a prefix and 32 digits are a device ID")
        }
        return (id, .device)
    }

    private func topic() throws -> String? {
        guard let topic = try body.string("topic") else { return nil }
        // By bytes, as the gateway compares it: U+212A is equal to K as a letter, and what the
        // gateway refuses of a topic halts all pushes of it.
        guard settings.topics.contains(where: { $0.utf8.elementsEqual(topic.utf8) }) else {
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
