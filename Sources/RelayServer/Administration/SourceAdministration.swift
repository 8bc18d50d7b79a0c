import ChangeSources
import PostgresFollowing
import RelayModel
import Storage

/// Change sources: list, show, set, rotate, delete; and the webhooks that were refused.
struct SourceAdministration: AdministrationTable {
    let registry: any ContainerRegistry & SourceRegistry
    /// The identity of the store.
    let store: UUIDBytes
    /// The outcomes of webhooks.
    let ledger: SourceLedger
    /// What the relay knows of a container's records.
    let knowledge: SubscriptionKnowledge
    /// The followers of the sources' databases; `nil` if no relay runs.
    let followers: SourceFollowers?
    /// The URL at which sources reach the relay.
    let publicURL: PublicURL
    /// Returns the given number of unpredictable bytes.
    let randomBytes: @Sendable (Int) -> [UInt8]
    /// The queue in which changes of one container's keys, sources and settings wait for each
    /// other.
    ///
    /// Each change starts from what the one before it wrote.
    let line: ReaderLine
    /// Compares mappings with what is known, which may take half a second, apart from other work.
    let bodies: LongBodies

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

    /// Runs `body` while no other call changes the container's keys, sources or settings.
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

    /// Creates or changes a source; members that the body does not name keep their values.
    ///
    /// A new source without a secret gets a generated one, which only this answer shows.
    private func set(
        _ request: RelayRequest, by administrator: Administrator
    ) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let name: SourceName = try request.identifier("source")
        guard !name.rawValue.hasPrefix("_") else {
            throw APIError(
                .badRequest,
                "source: names that begin with an underscore are reserved for the relay")
        }
        var given = try request.jsonBody().object
        if let stated = given["name"], stated != .string(name.rawValue) {
            throw APIError(.badRequest, "name: must be \"\(name)\", the same as in the path")
        }
        given["name"] = .string(name.rawValue)
        // The relay connects from its own machine and with that machine's files. A token of one
        // container must not use those.
        if let follow = given["follow"], follow != .null, administrator.container != nil {
            throw AuthenticationRefusal.notAllowed(
                "only a token for all containers may save a source that follows a database")
        }
        // A definition that is set here is for this store, even if the store is a copy and its
        // former definition names the original.
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

    /// The maximum number of sources of one container, and the maximum size of their definitions.
    ///
    /// A call about one source loads all of them.
    static let mostSources = 1000
    static let mostSourceBytes = 16 * 1024 * 1024

    private static func checkRoom(
        for source: ChangeSource, beside known: [StoredSource]
    ) throws(APIError) {
        let others = known.filter { $0.name != source.name }
        // A container that had more sources before this limit existed can still change each of
        // them.
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
                "the definitions of a container's change sources may have at most "
                    + "\(mostSourceBytes) bytes together, but would have \(bytes)")
        }
    }

    /// Refuses a definition that the follower of the database would refuse at once.
    private static func check(_ follow: FollowDefinition?) throws(JSONContractError) {
        guard let follow else { return }
        do throws(FollowProblem) {
            _ = try FollowSettings(follow, authorities: nil)
        } catch {
            throw JSONContractError(path: "follow.url", reason: error.advice)
        }
    }

    /// Gives a source a new secret; the former one stays valid for a grace period.
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

    /// One day: enough time to change the sender by hand, and to see that it posts again.
    private static let usualGrace: Int64 = 86_400
    /// Thirty days.
    private static let longestGrace: Int64 = 30 * 86_400

    /// Saves a source and returns its description; this shows `secret`, also in the text for the
    /// sender.
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

    /// Returns warnings about parts of the mapping that match no known table or field; `nil` if
    /// there are none.
    private func warnings(
        of source: ChangeSource, _ container: ContainerKey, at now: Timestamp
    ) async throws -> JSONValue? {
        guard source.mapping.namesTables else { return nil }
        let known = try await knowledge.known(of: container, for: .operators, at: now)
        let seen = SeenTables(
            fields: known.fieldNames, followed: source.follow?.tablePlaces ?? [])
        let sentences = try await bodies.apart(of: container) { source.mapping.unmet(in: seen) }
        return sentences.isEmpty ? nil : .array(sentences.map { .string($0) })
    }

    /// Returns the text that sets up the sender, and a trial webhook.
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
        // A source whose definition cannot be read can still be deleted.
        if let follow = (try? stored?.changeSource())?.follow, await !isFollowed(by: follow) {
            object["left"] = .string(Self.left(by: follow))
        }
        return RelayAnswer(json: .object(object))
    }

    /// Returns whether another source uses the same slot or outbox.
    ///
    /// If so, it must not be dropped, because that source would lose its changes.
    private func isFollowed(by ended: FollowDefinition) async -> Bool {
        for settings in (try? await registry.containers()) ?? [] {
            for stored in (try? await registry.sources(of: settings.key)) ?? [] {
                guard let follow = (try? stored.changeSource())?.follow else { continue }
                if follow.url == ended.url, !ended.isLeft(by: follow) { return true }
            }
        }
        return false
    }

    /// Returns a sentence about what stays in the followed database and keeps growing there.
    private static func left(by follow: FollowDefinition) -> String {
        follow.readsOutbox
            ? "the outbox keeps growing: remove it with belfry follow postgres --outbox --drop "
                + "--url …"
            : "the server keeps its log for the slot \(follow.slot) until you drop it: SELECT "
                + "pg_drop_replication_slot('\(follow.slot)')"
    }

    /// Returns the definition without secrets, the URL to post to, and the outcomes of webhooks.
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

    /// Returns the state of following the source's database; `nil` if the relay follows none for
    /// it.
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
    /// Returns whether following `other` instead leaves this slot or outbox without a reader.
    ///
    /// The URL is not compared, because another URL may lead to the same database.
    func isLeft(by other: FollowDefinition?) -> Bool {
        guard let other else { return true }
        return readsOutbox != other.readsOutbox || !readsOutbox && slot != other.slot
    }
}
