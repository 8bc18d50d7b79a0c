import Crypto
import Delivery
import RelayModel
import Storage

/// Containers: list, show, create, set.
struct ContainerAdministration: AdministrationTable {
    let registry: any ContainerRegistry
    /// The halts in force: what is not sent, and why.
    let halts: @Sendable () -> [HaltInForce]
    /// Called with a container's settings after they were saved.
    let saved: @Sendable (ContainerSettings) -> Void
    /// Called when user tokens of a container may no longer be valid.
    let revoked: @Sendable (Revocation) async -> Void
    /// The shards of the service; `nil` if the store is the only one.
    let shards: ShardAccess?
    /// The queue in which changes of a container's settings wait for each other: each starts from
    /// what the one before it wrote, and `saved` is called in the order of the writes.
    let line: ReaderLine
    /// The executor that opens certificates.
    let certificates: LongBodies

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listContainers, respond: list),
            AdministrationRoute(.showContainer, respond: show),
            AdministrationRoute(.createContainer, respond: create),
            AdministrationRoute(.setContainer, respond: set),
        ]
    }

    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let containers = try await registry.containers()
        var rows = containers.map(AdministrationRows.container.json)
        guard let shards else { return AdministrationCall.listContainers.answer(rows) }
        for index in rows.indices { rows[index]["shard"] = .string(shards.own) }
        let elsewhere = shards.elsewhere().flatMap { schema, keys in
            keys.map { key -> JSONValue in
                [
                    "container": .string(key.container.rawValue),
                    "environment": .string(key.environment.rawValue), "shard": .string(schema),
                ]
            }
        }
        return AdministrationCall.listContainers.answer(
            rows, besides: ["elsewhere": .array(elsewhere)])
    }

    private func show(_ request: RelayRequest) async throws -> RelayAnswer {
        RelayAnswer(
            json: .object(try await shown(try await registry.settings(in: request))))
    }

    /// Returns the settings, with the halts in force and the container's use of its quotas.
    func shown(_ settings: ContainerSettings) async throws -> JSONObject {
        var shown = settings.shown
        shown["halts"] = halts().json(of: settings.key)
        shown["use"] = try await useJSON(of: settings)
        return shown
    }

    /// Returns what the container uses of each quota, and the quota.
    private func useJSON(of settings: ContainerSettings) async throws -> JSONValue {
        let use = try await registry.quotaUse(of: settings.key)
        let quotas = registry.quotas.overridden(by: settings.quotas)
        var object = JSONObject()
        for quota in Quota.allCases {
            guard let amount = use.amounts[quota] else { continue }
            object[quota.rawValue] = [
                "use": .integer(Int64(amount)), "limit": .integer(Int64(quotas[quota])),
            ]
        }
        object["recordsNotKept"] = .integer(Int64(use.unkept))
        return .object(object)
    }

    /// Creates a container; refuses one that exists.
    private func create(
        _ request: RelayRequest, _ administrator: Administrator
    ) async throws -> RelayAnswer {
        let key = try request.containerKey()
        return try await line.turn(of: key) { try await make(key, request, administrator) }
    }

    private func make(
        _ key: ContainerKey, _ request: RelayRequest, _ administrator: Administrator
    ) async throws -> RelayAnswer {
        guard try await registry.container(key) == nil else {
            throw APIError(
                .exists,
                "the container \(key) already exists; change it with PATCH (belfry containers set)")
        }
        let settings = try await certificates.settings(request, of: key) {
            try newSettings(key, request, administrator)
        }
        if let shards {
            try await shards.creating(key) { [registry, saved] check in
                try await registry.save(settings, at: request.receivedAt, checking: check)
                saved(settings)
            }
        } else {
            try await registry.save(settings, at: request.receivedAt)
            saved(settings)
        }
        return RelayAnswer(status: 201, json: settings.shownJSON)
    }

    // Kept out of the asynchronous calls: Swift 6.3.1's optimiser crashes when it splits a
    // coroutine around a mutating call with typed throws.
    @inline(never)
    private func newSettings(
        _ key: ContainerKey, _ request: RelayRequest, _ administrator: Administrator
    ) throws -> ContainerSettings {
        var settings = ContainerSettings(key: key, topics: [])
        try Self.checkBounds(try request.optionalJSONBody(), administrator)
        try settings.apply(request.optionalJSONBody())
        guard !settings.topics.isEmpty else {
            throw APIError(.badRequest, "topics: at least one is required (APNs: a bundle ID)")
        }
        return settings
    }

    @inline(never)
    private func changed(
        _ settings: ContainerSettings, _ request: RelayRequest, _ administrator: Administrator
    ) throws -> ContainerSettings {
        var settings = settings
        try Self.checkBounds(try request.jsonBody(), administrator)
        try settings.apply(request.jsonBody())
        return settings
    }

    /// Refuses settings that protect other containers if the token is limited to one container.
    private static func checkBounds(
        _ body: JSONReader, _ administrator: Administrator
    ) throws {
        guard administrator.container != nil else { return }
        for name in ContainerSettings.operatorMembers where body.object[name] != nil {
            throw AuthenticationRefusal.notAllowed(
                "\(name): a token that is limited to one container may not set the container's "
                    + "bounds")
        }
    }

    /// Changes the settings that the body names and keeps the others.
    private func set(
        _ request: RelayRequest, _ administrator: Administrator
    ) async throws -> RelayAnswer {
        let key = try request.containerKey()
        return try await line.turn(of: key) { try await change(request, administrator) }
    }

    private func change(
        _ request: RelayRequest, _ administrator: Administrator
    ) async throws -> RelayAnswer {
        let former = try await registry.settings(in: request)
        let settings = try await certificates.settings(request, of: former.key) {
            try changed(former, request, administrator)
        }
        try await registry.save(settings, at: request.receivedAt)
        saved(settings)
        if settings.refuses(tokensOf: former) { await revoked(.userKeys(settings.key)) }
        return RelayAnswer(json: settings.shownJSON)
    }
}

extension ContainerSettings {
    /// The settings that limit what a container may use of the relay that it shares with others.
    static let operatorMembers = ["costLimits", "quotas", "rates", "limits"]

    /// Whether a user token that was valid under the settings `former` may be invalid now.
    func refuses(tokensOf former: ContainerSettings) -> Bool {
        if former.sessions != nil, sessions == nil { return true }
        guard let before = former.userTokens else { return false }
        return userTokens?.refuses(tokensOf: before) ?? true
    }

    /// Warnings for the operator, one sentence each.
    var warnings: [String] {
        guard let userTokens, let keySet = userTokens.keySet else { return [] }
        var warnings: [String] = []
        let missing = [("issuer", userTokens.issuer), ("audience", userTokens.audience)]
            .filter { $0.1 == nil }.map(\.0)
        if !missing.isEmpty {
            warnings.append(
                "userTokens: without \(missing.joined(separator: " and ")), the relay also accepts "
                    + "tokens that the identity provider issued to other applications")
        }
        if let member = JSONWebKeySet.secretMember(of: keySet) {
            warnings.append(
                "userTokens: keySet.\(member) is the secret part of a key, and everybody who may "
                    + "read these settings could see it: replace that key, and save only the "
                    + "public part")
        }
        return warnings
    }

    /// Changes the settings that `body` names; `null` clears an optional one.
    ///
    /// - Throws: `JSONContractError` for the first invalid member; then nothing is changed.
    mutating func apply(_ body: JSONReader) throws(JSONContractError) {
        try body.allowOnly(AdministrationCall.settings.map(\.name))
        var changed = self
        if let topics = try body.strings("topics") {
            try Self.check(topics, body)
            changed.topics = topics
        }
        if body.object["apns"] == .null { (changed.credential, changed.certificate) = (nil, nil) }
        if let apns = try body.reader("apns") {
            let isCertificate = apns.value("certificate") != nil
            changed.certificate = isCertificate ? try ProviderCertificate(apns) : nil
            changed.credential = isCertificate ? nil : try ProviderCredential(apns)
        }
        if body.object["userTokens"] == .null { changed.userTokens = nil }
        if let userTokens = try body.reader("userTokens") {
            changed.userTokens = try UserTokenSettings(userTokens)
        }
        if let keepsInbox = try body.bool("keepsInbox") { changed.keepsInbox = keepsInbox }
        if body.object["sessions"] == .null { changed.sessions = nil }
        if let sessions = try body.reader("sessions") {
            changed.sessions = try SessionSettings(
                sessions, changing: changed.sessions ?? SessionSettings())
        }
        if body.object["costLimits"] == .null { changed.costs = CostBounds() }
        if let costs = try body.reader("costLimits") {
            changed.costs = try CostBounds(costs, changing: changed.costs)
        }
        if body.object["quotas"] == .null { changed.quotas = Quotas() }
        if let quotas = try body.reader("quotas") {
            changed.quotas = try Quotas(quotas, changing: changed.quotas)
        }
        if body.object["rates"] == .null { changed.rates = RequestRates() }
        if let rates = try body.reader("rates") {
            changed.rates = try RequestRates(rates, changing: changed.rates)
        }
        if let seconds = try body.integer("expirationSeconds") {
            guard (0...31_536_000).contains(seconds) else {
                throw body.failure("expirationSeconds", "must be 0 to 31536000")
            }
            changed.expirationSeconds = seconds
        }
        self = changed
    }

    private static func check(_ topics: [String], _ body: JSONReader) throws(JSONContractError) {
        guard (1...32).contains(topics.count) else {
            throw body.failure("topics", "must be 1 to 32 bundle IDs")
        }
        for (index, topic) in topics.enumerated()
        where ContainerID(rawValue: topic) == nil {
            throw body.failure(
                "topics[\(index)]",
                "must be 1 to 255 letters, digits, dots, hyphens and underscores")
        }
        for (index, topic) in topics.enumerated() where topics[..<index].contains(topic) {
            throw body.failure(
                "topics[\(index)]", "\"\(topic)\" is there already; name each topic once")
        }
        // Halts do not apply to the courier's topic, so APNs pushes with it that a halt should
        // hold would be tried again without end.
        if let index = topics.firstIndex(of: Device.courierTopic) {
            throw body.failure(
                "topics[\(index)]",
                "\"\(Device.courierTopic)\" is reserved for devices of web couriers; give the "
                    + "application's bundle ID")
        }
    }

    /// The settings without secrets, as JSON.
    var shownJSON: JSONValue { .object(shown) }

    /// The members of ``shownJSON``.
    var shown: JSONObject {
        var object: JSONObject = [
            "container": .string(key.container.rawValue),
            "environment": .string(key.environment.rawValue),
            "topics": .array(topics.map { .string($0) }),
            "expirationSeconds": .integer(expirationSeconds),
            "keepsInbox": .bool(keepsInbox),
        ]
        object["sessions"] = sessions.map(\.shownJSON)
        object["apns"] = credential.map {
            ["teamID": .string($0.teamID), "keyID": .string($0.keyID), "privateKey": "(hidden)"]
        }
        if let certificate {
            object["apns"] = [
                "certificate": "(hidden)", "packing": .string(certificate.packing.rawValue),
            ]
        }
        object["userTokens"] = userTokens.map(\.shownJSON)
        object["costLimits"] = costs.json
        object["quotas"] = quotas.json
        object["rates"] = rates.json
        if !warnings.isEmpty { object["warnings"] = .array(warnings.map { .string($0) }) }
        return object
    }
}

extension ProviderCredential {
    /// Reads the credential for APNs' provider tokens.
    init(_ reader: JSONReader) throws(JSONContractError) {
        try reader.allowOnly(["teamID", "keyID", "privateKey"])
        let teamID = try Self.identifier("teamID", reader)
        let keyID = try Self.identifier("keyID", reader)
        let pem = try reader.require("privateKey", try reader.string("privateKey"))
        guard (try? P256.Signing.PrivateKey(pemRepresentation: pem)) != nil else {
            throw reader.failure(
                "privateKey", "must be an ECDSA P-256 private key in PEM form (APNs: the .p8 file)")
        }
        self.init(teamID: teamID, keyID: keyID, privateKeyPEM: pem)
    }

    private static func identifier(
        _ name: String, _ reader: JSONReader
    ) throws(JSONContractError) -> String {
        let text = try reader.require(name, try reader.string(name))
        // The gateway accepts no other identifiers, so the container could send nothing.
        guard (1...64).contains(text.utf8.count), text.utf8.allSatisfy(isLetterOrDigit) else {
            throw reader.failure(name, "must be 1 to 64 letters and digits (APNs: ten)")
        }
        return text
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}
