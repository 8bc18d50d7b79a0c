import Fanout
import RelayModel
import Storage

/// CloudKit's calls on subscriptions: list, lookup and modify.
struct SubscriptionRoutes: Sendable {
    let clients: ClientAdmission
    let registry: any SubscriptionRegistry & DeliveryRegistry
    /// Reads the health of subscriptions.
    let health: HealthReading
    let shadow: any Shadow
    /// What is known about records, for warnings about conditions.
    let knowledge: SubscriptionKnowledge
    /// The containers' indexes, which are needed for the costs of conditions.
    let indexes: IndexDirectory
    /// The queue for calls that list much.
    let lists: ReaderLine
    /// Writes answers, which may be long.
    let answers: LongAnswers
    let limits: RequestLimits
    let identifiers: RandomIdentifiers

    /// Members of CloudKit's requests that clients send with every call, and that have no meaning
    /// here.
    static let idleMembers = [
        "clientId", "clientID", "zoneID", "desiredKeys", "numbersAsStrings", "resultsLimit",
    ]

    private static let prefix = RelayRoute.database + "/subscriptions"

    var routes: [RelayRoute] {
        [
            clients.route("GET", "\(Self.prefix)/list", respond: list),
            // Some clients post an empty object.
            clients.route("POST", "\(Self.prefix)/list", effect: .reads, respond: list),
            clients.route("POST", "\(Self.prefix)/lookup", effect: .reads, respond: lookup),
            clients.route("POST", "\(Self.prefix)/modify", respond: modify),
        ]
    }

    // MARK: list

    private func list(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let owner = try SubscriptionOwner(admitted)
        let marker = try request.continuationMarker()
        return try await lists.turn(of: owner.container, by: admitted.party) {
            let page = try await registry.subscriptionPage(
                of: owner, after: marker,
                PageBounds(rows: Limits.maximumSubscriptionsPerUser))
            // Disabled subscriptions come after the last page.
            let disabled =
                page.hasMore ? [] : try await registry.disabledSubscriptions(of: owner)
            let health = try await health.health(
                of: page.elements + disabled.map(\.version), in: owner.container)
            let held = try await held(of: owner)
            var answer: JSONObject = [
                "subscriptions": .array(
                    page.elements.map {
                        .object($0.json.with(health[$0.serial], held.deliveries(of: $0)))
                    }
                        + disabled.map {
                            .object(
                                $0.json.with(
                                    health[$0.version.serial], held.deliveries(of: $0.version)))
                        })
            ]
            // CloudKit has no pages here, and few clients will ever need one.
            if page.hasMore, let last = page.elements.last {
                let marker = Base64.encode(Array(last.subscription.id.rawValue.utf8))
                answer["continuationMarker"] = .string(marker)
            }
            return await answers.answer(.object(answer))
        }
    }

    /// Returns the owner's held deliveries.
    private func held(of owner: SubscriptionOwner) async throws -> HeldOverview {
        try await HeldOverview(of: [owner.user], in: owner.container, registry)
    }

    // MARK: lookup

    /// What exists under a requested ID.
    private enum Found {
        case active(SubscriptionVersion)
        case disabled(DisabledSubscription)
        case nothing(SubscriptionID, APIError)

        var version: SubscriptionVersion? {
            switch self {
            case .active(let version): version
            case .disabled(let disabled): disabled.version
            case .nothing: nil
            }
        }
    }

    private func lookup(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let owner = try SubscriptionOwner(admitted)
        let ids = try SubscriptionLookup(request.jsonBody(), limits: limits).ids
        return try await lists.turn(of: owner.container, by: admitted.party) {
            let found = try await find(ids, of: owner)
            // For all at once, because each call reads everything that fired lately.
            let health = try await health.health(
                of: found.compactMap(\.version), in: owner.container)
            let held = try await held(of: owner)
            return answer(
                found.map { one -> JSONValue in
                    switch one {
                    case .active(let version):
                        .object(
                            version.json.with(health[version.serial], held.deliveries(of: version)))
                    case .disabled(let disabled):
                        .object(
                            disabled.json.with(
                                health[disabled.version.serial],
                                held.deliveries(of: disabled.version)))
                    case .nothing(let id, let error):
                        error.entry("subscriptionID", .string(id.rawValue), uuid: request.uuid)
                    }
                })
        }
    }

    /// Returns what exists under each ID, as far as it fits one answer.
    private func find(
        _ ids: [SubscriptionID], of owner: SubscriptionOwner
    ) async throws -> [Found] {
        // An ID that is named many times is read once.
        var named: Set<SubscriptionID> = []
        let (active, unread) = try await registry.subscriptions(
            named: ids.filter { named.insert($0).inserted }, of: owner,
            bytes: Limits.maximumPageBytes)
        let versions = Dictionary(
            active.map { ($0.subscription.id, $0) }, uniquingKeysWith: { first, _ in first })
        let isMissing = ids.contains { versions[$0] == nil && !unread.contains($0) }
        let disabled = try await isMissing ? disabledByID(of: owner) : [:]
        var page = AnswerPage(limit: ids.count)
        return ids.map { id -> Found in
            guard !page.isFull, !unread.contains(id) else { return .nothing(id, .answerIsFull) }
            if let version = versions[id] {
                page.take(.object(version.json))
                return .active(version)
            }
            guard let one = disabled[id] else {
                let error = APIError(.notFound, "there is no subscription \"\(id)\"")
                return .nothing(id, error)
            }
            page.take(.object(one.json))
            return .disabled(one)
        }
    }

    private func disabledByID(
        of owner: SubscriptionOwner
    ) async throws -> [SubscriptionID: DisabledSubscription] {
        Dictionary(
            try await registry.disabledSubscriptions(of: owner)
                .map { ($0.version.subscription.id, $0) },
            uniquingKeysWith: { first, _ in first })
    }

    // MARK: modify

    private func modify(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let owner = try SubscriptionOwner(admitted)
        var limits = limits
        limits.costs = limits.costs.narrowed(by: admitted.settings.costs)
        let schema = try await shadow.schema(of: owner.container)
        let modification = try await readModification(
            request, by: admitted, owner, within: limits, schema)
        var outcomes: [SubscriptionEditOutcome] = []
        // What was not saved, or is not known to be, no longer counts as being saved.
        defer { modification.settle(outcomes, in: owner.container) }
        guard let edits = modification.edits else {
            return answer(modification.entries(outcomes: [], [], uuid: request.uuid))
        }
        if !edits.isEmpty {
            outcomes = try await registry.edit(
                edits, of: owner, atomicity: modification.atomicity, at: request.receivedAt)
        }
        // The edits are saved already, so a client that has gone is not treated as an error.
        let warnings = try? await clients.bodies.working(
            request, of: owner.container, by: admitted.party
        ) {
            await knowledge.warnings(of: edits, at: request.receivedAt)
        }
        return answer(
            modification.entries(outcomes: outcomes, warnings ?? [], uuid: request.uuid))
    }

    /// Parses what is to be saved.
    ///
    /// If conditions are too costly, the saved versions that they replace are read, and the body is
    /// parsed again in view of them. Some clients save all of their subscriptions at each start.
    private func readModification(
        _ request: RelayRequest, by admitted: AdmittedCaller, _ owner: SubscriptionOwner,
        within limits: RequestLimits, _ schema: ContainerSchema
    ) async throws -> SubscriptionModification {
        let first = try await read(
            request, by: admitted, owner, within: limits, schema, insteadOf: [:])
        guard !first.heavy.isEmpty else { return first }
        let known: [SubscriptionID: SubscriptionVersion]
        do {
            known = try await saved(first.heavy, of: owner)
        } catch {
            first.settle([], in: owner.container)
            throw error
        }
        guard !known.isEmpty else { return first }
        first.settle([], in: owner.container)
        return try await read(
            request, by: admitted, owner, within: limits, schema, insteadOf: known)
    }

    /// Returns those of these subscriptions that are saved.
    private func saved(
        _ ids: [SubscriptionID], of owner: SubscriptionOwner
    ) async throws -> [SubscriptionID: SubscriptionVersion] {
        // Reading more than one request may save is pointless.
        let found = try await registry.subscriptions(
            named: ids, of: owner, bytes: 4 * Limits.maximumPageBytes
        ).found
        return Dictionary(
            found.map { ($0.subscription.id, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// Parses what is to be saved; a long body is parsed on a thread that gives way.
    private func read(
        _ request: RelayRequest, by admitted: AdmittedCaller, _ owner: SubscriptionOwner,
        within limits: RequestLimits, _ schema: ContainerSchema,
        insteadOf known: [SubscriptionID: SubscriptionVersion]
    ) async throws -> SubscriptionModification {
        let read = { @Sendable () throws -> SubscriptionModification in
            try SubscriptionModification(
                request.jsonBody(), owner: owner, limits: limits, schema: schema,
                lifetime: admitted.settings.expirationSeconds, indexes: indexes,
                insteadOf: known, at: request.receivedAt,
                assignID: { identifiers.uuid().uppercased() })
        }
        guard request.body.count > LongBodies.leastOfConditions else {
            return try await indexes.whenFree(owner.container) { try read() }
        }
        return try await clients.bodies.apart(of: owner.container, by: admitted.party, read)
    }

    private func answer(_ entries: [JSONValue]) -> RelayAnswer {
        RelayAnswer(json: ["subscriptions": .array(entries)])
    }
}

extension SubscriptionOwner {
    /// Creates the owner from the caller and the database of the call.
    init(_ admitted: AdmittedCaller) throws(AuthenticationRefusal) {
        self.init(
            container: admitted.settings.key, database: admitted.database,
            user: try admitted.user())
    }
}

extension JSONObject {
    /// Returns the dictionary of a subscription with its health and the number of its held
    /// deliveries.
    func with(_ health: JSONObject?, _ held: Int?) -> JSONObject {
        var object = self
        object["health"] = health.map { .object($0) }
        object["held"] = held.map { .integer(Int64($0)) }
        return object
    }
}

extension SubscriptionVersion {
    /// CloudKit's dictionary, with the position from which changes are judged, which is opaque to
    /// clients.
    var json: JSONObject {
        var object = subscription.json
        object["activationPosition"] = .string(activation.description)
        return object
    }
}

extension DisabledSubscription {
    /// The subscription as it was, with the reason why it no longer fires.
    var json: JSONObject {
        var object = version.json
        object["disabled"] = [
            "reason": .string(reason), "position": .string(position.description),
        ]
        return object
    }
}

/// The body of `subscriptions/lookup`.
struct SubscriptionLookup {
    /// The IDs, in order.
    let ids: [SubscriptionID]

    /// Parses dictionaries with `subscriptionID`, or bare strings, because clients send both.
    ///
    /// - Throws: `JSONContractError`, or 400 for too many.
    init(_ body: JSONReader, limits: RequestLimits) throws {
        try body.allowOnly(["subscriptions"] + SubscriptionRoutes.idleMembers)
        let elements = try body.require("subscriptions", try body.array("subscriptions"))
        try limits.check(elements.count, of: "subscriptions")
        ids = try elements.enumerated().map { index, element in
            let path = "subscriptions[\(index)]"
            let object: JSONValue =
                if case .string = element { ["subscriptionID": element] } else { element }
            // Some clients look a subscription up with its whole dictionary; only the ID counts.
            let reader = try JSONReader(object, path: path)
            return try reader.require("subscriptionID", try reader.identifier("subscriptionID"))
        }
    }
}

extension RelayRequest {
    /// Returns the subscription after which a page of `subscriptions/list` continues, from the body
    /// or the query.
    ///
    /// - Throws: 400 if the marker is not valid, or the body no JSON object: a reader of pages
    ///   would otherwise get the first one again and again.
    func continuationMarker() throws -> SubscriptionID? {
        var text = query["continuationMarker"]
        if text == nil { text = try optionalJSONBody().string("continuationMarker") }
        guard let text else { return nil }
        guard let bytes = Base64.decode(text), let name = String(utf8: bytes),
            let id = SubscriptionID(rawValue: name)
        else {
            throw APIError(
                .badRequest,
                "continuationMarker: it is not from an answer of this call; start again without it")
        }
        return id
    }
}
