import ChangeSources
import PostgresFollowing
import RelayModel
import Storage

/// Change sources: list, show, set, rotate, delete; and webhooks that were refused.
struct SourceAdministration: AdministrationTable {
    let registry: any ContainerRegistry & SourceRegistry
    /// The identity of the store.
    let store: UUIDBytes
    /// What became of webhooks.
    let ledger: SourceLedger
    /// What is known of a container's records.
    let knowledge: SubscriptionKnowledge
    /// Follow the databases of sources; `nil` where no relay runs.
    let followers: SourceFollowers?
    /// How sources reach the relay.
    let publicURL: PublicURL
    /// Makes unpredictable bytes, as many as it is asked for.
    let randomBytes: @Sendable (Int) -> [UInt8]
    /// Has one at a time change what is set of a container: each goes on from what the one before
    /// wrote.
    let line: ReaderLine

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listSources, respond: list),
            AdministrationRoute(.showSource, respond: show),
            AdministrationRoute(.setSource) { request, administrator in
                try await inTurn(request) { try await set(request, by: administrator) }
            },
            AdministrationRoute(.rotateSource) { request in
                try await inTurn(request) { try await rotate(request) }
            },
            AdministrationRoute(.deleteSource) { request in
                try await inTurn(request) { try await delete(request) }
            },
            AdministrationRoute(.listRefusals, respond: refusals),
        ]
    }

    /// Runs `body` while nobody else changes what is set of the container.
    private func inTurn(
        _ request: RelayRequest, _ body: () async throws -> RelayAnswer
    ) async throws -> RelayAnswer {
        let key = try request.containerKey()
        return try await line.turn(of: key) { try await body() }
    }

    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let sources = try await registry.sources(of: try await registry.key(in: request))
        return AdministrationCall.listSources.answer(try sources.map(shownObject))
    }

    private func show(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let name: SourceName = try request.identifier("source")
        guard let stored = try await registry.source(name, of: container) else {
            throw unknown(name)
        }
        let source = try stored.changeSource()
        var object = try shownObject(stored)
        object["warnings"] = try await warnings(of: source, container, at: request.receivedAt)
        object["sender"] = sender(source, of: container)
        return RelayAnswer(json: .object(object))
    }

    /// Saves a source, new or not: what the body does not name stays as it was.
    ///
    /// Where a new one names no secret, one is made and shown in this answer and never again.
    private func set(
        _ request: RelayRequest, by administrator: Administrator
    ) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let name: SourceName = try request.identifier("source")
        guard !name.rawValue.hasPrefix("_") else {
            throw APIError(
                .badRequest, "source: names that begin with an underscore are the relay's own")
        }
        var given = try request.jsonBody().object
        if let stated = given["name"], stated != .string(name.rawValue) {
            throw APIError(.badRequest, "name: must be \"\(name)\", as in the path")
        }
        given["name"] = .string(name.rawValue)
        // The relay connects from its own machine, with files that lie there.
        if let follow = given["follow"], follow != .null, administrator.container != nil {
            throw AuthenticationRefusal.notAllowed(
                "a source that follows a database needs a token for all containers")
        }
        // Whoever says what is followed says it for this store, whatever a copy of it had taken.
        if case .object(var follow)? = given["follow"] {
            follow["store"] = .string(store.description)
            given["follow"] = .object(follow)
        }
        let former = try await registry.source(name, of: container)
        let definition = try SourceDefinition(
            given,
            over: former.map { stored throws(JSONContractError) in
                try stored.changeSource()
            }, randomBytes: randomBytes)
        try Self.check(definition.source.follow)
        try Self.checkRoom(
            for: definition.source, beside: try await registry.sources(of: container))
        var answer = try await save(
            definition.source, definition.madeSecret, of: container, at: request.receivedAt)
        if !definition.warnings.isEmpty {
            var warnings = definition.warnings.map { JSONValue.string($0) }
            if case .array(let others)? = answer["warnings"] { warnings += others }
            answer["warnings"] = .array(warnings)
        }
        if let follow = (try? former?.changeSource())?.follow,
            follow.isLeft(by: definition.source.follow), await !isFollowed(by: follow)
        {
            answer["left"] = .string(Self.left(by: follow))
        }
        return RelayAnswer(status: former == nil ? 201 : 200, json: .object(answer))
    }

    /// Sources of one container, and the bytes of their definitions: all of them are in memory
    /// while one is asked about.
    static let mostSources = 1000
    static let mostSourceBytes = 16 * 1024 * 1024

    private static func checkRoom(
        for source: ChangeSource, beside known: [StoredSource]
    ) throws(APIError) {
        let others = known.filter { $0.name != source.name }
        // Where there were more before there was a bound, each can be changed still.
        guard others.count < mostSources || others.count < known.count else {
            throw APIError(
                .quotaExceeded, "a container has at most \(mostSources) change sources")
        }
        let bytes = others.reduce(JSONValue.object(source.json).utf8.count) {
            $0 + $1.definition.utf8.count
        }
        guard bytes <= mostSourceBytes else {
            throw APIError(
                .quotaExceeded,
                "the change sources of a container have at most \(mostSourceBytes) bytes "
                    + "together, and would have \(bytes)")
        }
    }

    /// What the following of a database would refuse at once is refused here.
    private static func check(_ follow: FollowDefinition?) throws(JSONContractError) {
        guard let follow else { return }
        do throws(FollowProblem) {
            _ = try FollowSettings(follow, authorities: nil)
        } catch {
            throw JSONContractError(path: "follow.url", reason: error.advice)
        }
    }

    /// Gives a source another secret, beside which the one before is accepted for a while.
    private func rotate(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let name: SourceName = try request.identifier("source")
        let reader = try request.optionalJSONBody()
        try reader.allowOnly(["secret", "graceSeconds"])
        let grace = try reader.integer("graceSeconds") ?? Self.usualGrace
        guard (0...Self.longestGrace).contains(grace) else {
            throw reader.failure("graceSeconds", "must be 0 to \(Self.longestGrace)")
        }
        guard let stored = try await registry.source(name, of: container) else {
            throw unknown(name)
        }
        let now = request.receivedAt
        let rotated = try stored.changeSource().rotated(
            to: try reader.string("secret"),
            formerUntil: grace == 0 ? nil : now.advanced(by: .seconds(grace)), at: now,
            randomBytes: randomBytes)
        return RelayAnswer(
            json: .object(
                try await save(rotated.source, rotated.secret, of: container, at: now)))
    }

    /// A day: long enough to change the sender by hand, and to see that it posts again.
    private static let usualGrace: Int64 = 86_400
    /// Thirty days.
    private static let longestGrace: Int64 = 30 * 86_400

    /// Saves a source; `secret` is shown, and what is to be pasted has it.
    private func save(
        _ source: ChangeSource, _ secret: String?, of container: ContainerKey,
        at now: Timestamp
    ) async throws -> JSONObject {
        let stored = StoredSource(
            container: container, name: source.name, definition: .object(source.json),
            savedAt: now)
        try await registry.save(stored)
        followers?.lookAgain(at: SourcePlace(container: container, source: source.name))
        var answer = try shownObject(stored)
        answer["warnings"] = try await warnings(of: source, container, at: now)
        answer["secret"] = secret.map { .string($0) }
        answer["sender"] = sender(source, of: container, secret)
        return answer
    }

    /// What of its mapping nothing bears that is known, `nil` if there is nothing to be said.
    private func warnings(
        of source: ChangeSource, _ container: ContainerKey, at now: Timestamp
    ) async throws -> JSONValue? {
        guard source.mapping.namesTables else { return nil }
        let known = try await knowledge.known(of: container, for: .operators, at: now)
        let seen = SeenTables(
            fields: known.fieldNames, followed: source.follow?.tablePlaces ?? [])
        let sentences = source.mapping.unmet(in: seen)
        return sentences.isEmpty ? nil : .array(sentences.map { .string($0) })
    }

    /// The sender's side, ready to paste, and a webhook to try.
    private func sender(
        _ source: ChangeSource, of container: ContainerKey, _ secret: String? = nil
    ) -> JSONValue {
        if let follow = source.follow { return ["setup": .string(follow.preparingText)] }
        let guide = SenderGuide(to: source, at: url(of: source.name, container), secret: secret)
        var object: JSONObject = ["setup": .string(guide.setup)]
        object["trial"] = guide.trial.map { .string($0) }
        return .object(object)
    }

    private func refusals(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        return AdministrationCall.listRefusals.answer(
            ledger.refusals(of: container).map(AdministrationRows.refusal.json))
    }

    private func delete(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let name: SourceName = try request.identifier("source")
        let stored = try await registry.source(name, of: container)
        guard try await registry.deleteSource(name, of: container) else {
            throw unknown(name)
        }
        ledger.forget(name, of: container)
        followers?.lookAgain(at: SourcePlace(container: container, source: name))
        var object: JSONObject = ["name": .string(name.rawValue), "deleted": true]
        // What cannot be read can be deleted all the same.
        if let follow = (try? stored?.changeSource())?.follow, await !isFollowed(by: follow) {
            object["left"] = .string(Self.left(by: follow))
        }
        return RelayAnswer(json: .object(object))
    }

    /// Whether another source goes on by the same slot or outbox: whoever drops it takes that
    /// one's changes.
    private func isFollowed(by ended: FollowDefinition) async -> Bool {
        for settings in (try? await registry.containers()) ?? [] {
            for stored in (try? await registry.sources(of: settings.key)) ?? [] {
                guard let follow = (try? stored.changeSource())?.follow else { continue }
                if follow.url == ended.url, !ended.isLeft(by: follow) { return true }
            }
        }
        return false
    }

    /// What stays in the database that was followed, and grows there.
    private static func left(by follow: FollowDefinition) -> String {
        follow.readsOutbox
            ? "the outbox fills on: belfry follow postgres --outbox --drop --url … removes it"
            : "the server keeps its log for the slot \(follow.slot) until it is dropped: SELECT "
                + "pg_drop_replication_slot('\(follow.slot)')"
    }

    /// The definition without secrets, where to post, and what became of webhooks.
    func shownObject(_ stored: StoredSource) throws -> JSONObject {
        let source = try stored.changeSource()
        var object = source.shownJSON
        let key = stored.container
        object["following"] = following(source, of: key)
        object["url"] = .string(url(of: stored.name, key))
        object["savedAt"] = .string(stored.savedAt.iso8601)
        object["webhooks"] = .object(
            (ledger.tallies(of: key)[stored.name] ?? SourceLedger.Tally()).json)
        return object
    }

    /// How it stands with the database that the relay follows for a source, if it does.
    private func following(_ source: ChangeSource, of key: ContainerKey) -> JSONValue? {
        guard source.follow != nil else { return nil }
        let place = SourcePlace(container: key, source: source.name)
        return .object((followers?.standing(of: place) ?? .stopped).json)
    }

    private func url(of source: SourceName, _ container: ContainerKey) -> String {
        "\(publicURL)/changes/1/\(container.container)/\(container.environment.rawValue)/\(source)"
    }

    private func unknown(_ name: SourceName) -> APIError {
        APIError(.notFound, "there is no change source \"\(name)\"")
    }
}

private extension FollowDefinition {
    /// Whether nobody reads on from this slot, or this outbox, once `other` is followed instead: an
    /// URL that is another may lead to the same database.
    func isLeft(by other: FollowDefinition?) -> Bool {
        guard let other else { return true }
        return readsOutbox != other.readsOutbox || !readsOutbox && slot != other.slot
    }
}
