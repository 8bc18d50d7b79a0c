import ChangeSources
import HTTPTypes
import RelayModel
import Storage

/// Where change sources post (design §5).
struct ChangeRoutes: Sendable {
    private let dependencies: RelayDependencies
    private let sources = SourceMemory()

    init(_ dependencies: RelayDependencies) {
        self.dependencies = dependencies
    }

    var routes: [RelayRoute] {
        [
            RelayRoute(
                .changes, "POST", "/changes/1/{container}/{environment}/{source}",
                bodyLimit: .webhook, admit: recognize)
        ]
    }

    /// Looks whether the source is known, and whether the head of the request can be its own.
    private func recognize(_ request: RelayRequest) async throws -> RelayRoute.Admission {
        let (settings, source) = try await source(of: request)
        try source.recognize(webhook(request))
        return RelayRoute.Admission(
            container: settings, key: "source/\(source.name)", respond: post)
    }

    /// The source that the path names, and the settings of its container.
    private func source(
        of request: RelayRequest
    ) async throws -> (ContainerSettings, ChangeSource) {
        let settings = try await dependencies.registry.settings(of: request.containerKey())
        let name: SourceName = try request.identifier("source")
        guard let stored = try await dependencies.registry.source(name, of: settings.key) else {
            throw APIError(
                .notFound, "there is no change source \"\(name)\" in \(settings.key)")
        }
        return (settings, try sources.source(stored))
    }

    /// Verifies the raw bytes, decodes, appends, and only then answers 2xx.
    ///
    /// The source is looked up again: it may have been deleted while the body came.
    private func post(_ request: RelayRequest) async throws -> RelayAnswer {
        let (settings, source) = try await source(of: request)
        let webhook = webhook(request)
        try source.verify(webhook)
        let batch = try source.decode(webhook)
        let intake = ChangeIntake(dependencies, container: settings.key, source: source)
        let results = try await intake.take(batch, of: webhook, at: request.receivedAt)
        return results.answer(requiredAnswer: source.preset.requiredAnswer, uuid: request.uuid)
    }

    private func webhook(_ request: RelayRequest) -> WebhookRequest {
        var webhook = WebhookRequest(
            method: request.method, url: dependencies.publicURL + request.target,
            body: request.body, receivedAt: request.receivedAt)
        for field in request.headers {
            webhook.headers.append(field.name.canonicalName, field.value)
        }
        return webhook
    }
}

extension StoredSource {
    /// The source as the decoding room knows it.
    ///
    /// - Throws: `JSONContractError` if the definition was written by a version that knew more.
    func changeSource() throws(JSONContractError) -> ChangeSource {
        try ChangeSource(json: definition, path: "definition")
    }
}

/// Takes what a webhook says into the log; a second attempt at parked changes goes the same way.
struct ChangeIntake: Sendable {
    private let dependencies: RelayDependencies
    private let container: ContainerKey
    private let source: ChangeSource

    init(_ dependencies: RelayDependencies, container: ContainerKey, source: ChangeSource) {
        self.dependencies = dependencies
        self.container = container
        self.source = source
    }

    /// Appends the changes and parks what could not be mapped.
    ///
    /// Appending comes first: if parking fails, the source repeats itself, the changes are known by
    /// their keys, and nothing is parked twice.
    ///
    /// A conflict is answered 409; where that would stop the source, `webhook` is parked instead.
    func take(
        _ batch: DecodedBatch, of webhook: WebhookRequest? = nil, at now: Timestamp
    ) async throws -> ChangeResults {
        guard batch.items.count <= Limits.maximumChangesPerRequest else {
            throw APIError(
                .quotaExceeded,
                "\(batch.items.count) changes in one request; allowed are "
                    + "\(Limits.maximumChangesPerRequest)")
        }
        let changes = try await normalized(batch)
        var outcomes: [AppendOutcome] = []
        if !changes.isEmpty {
            outcomes = try await dependencies.inTurn(
                of: container, changes: changes.count, last: { $0.lastAppended }
            ) {
                try await dependencies.log.append(
                    changes, delivery: batch.key, container: container, source: source.name,
                    at: now)
            }
        }
        var remaining = outcomes[...]
        try await learn(from: changes)
        var results = ChangeResults()
        for item in batch.items {
            switch item {
            case .change: results.add(remaining.popFirst())
            case .refused(let path, let reason): results.addRefusal(path: path, reason: reason)
            case .ignored(let reason): results.addIgnored(reason: reason)
            case .parked(let body):
                results.add(parked: try await park(body, at: now), body)
            }
        }
        if results.conflicts > 0, source.onUnmappable == .park, let webhook {
            let error = DecodeError(
                .unmappable,
                reason: "\(results.conflicts) of \(batch.items.count) changes have the ID or "
                    + "position of another change; the others are appended")
            let body = source.parked(webhook.body, error, webhook.headers)
            results.parkConflicts(try await park(body, at: now), body)
        }
        return results
    }

    /// The changes in the form in which clients' own are: the zones of private databases, and what
    /// the schema says of fields.
    ///
    /// Their keys stay those of what was posted.
    private func normalized(_ batch: DecodedBatch) async throws -> [ChangeToAppend] {
        let posted = batch.items.compactMap { item -> ChangeToAppend? in
            guard case .change(let change, let key) = item else { return nil }
            return ChangeToAppend(change.withOwnZonesImplied, key: key)
        }
        guard !posted.isEmpty else { return [] }
        let schema = try await dependencies.shadow.schema(of: container)
        return posted.map { ChangeToAppend($0.change.meant(by: schema), key: $0.key) }
    }

    /// In development the schema learns what record types and fields there are.
    private func learn(from changes: [ChangeToAppend]) async throws {
        guard container.environment == .development, !changes.isEmpty else { return }
        var inference = SchemaInference(
            try await dependencies.shadow.schema(of: container), environment: .development)
        for change in changes { inference.observe(change.change) }
        guard !inference.additions.isEmpty else { return }
        try await dependencies.shadow.extendSchema(of: container, with: inference.additions)
    }

    private func park(_ body: ParkedBody, at now: Timestamp) async throws -> UInt64 {
        try await dependencies.registry.park(
            ParkedChange(
                container: container, source: source.name, reason: body.reason, path: body.path,
                body: Array(try JSONValue.object(body.json).storedText(path: "raw").utf8),
                headers: body.headers, receivedAt: now))
    }
}

extension [AppendOutcome] {
    /// The position of the last change that is in the log now and was not before.
    var lastAppended: LogPosition? {
        compactMap { outcome in
            switch outcome {
            case .appended(let position), .appendedAsStale(let position): position
            case .duplicate, .conflict: nil
            }
        }.max()
    }
}

/// What became of the changes of one webhook, in order.
struct ChangeResults: Sendable {
    private(set) var entries: [JSONValue] = []
    private(set) var conflicts = 0
    private(set) var refusals = 0
    private(set) var parked = 0

    mutating func add(_ outcome: AppendOutcome?) {
        switch outcome {
        case .appended(let position): add("appended", at: position)
        case .appendedAsStale(let position):
            add(
                "stale", at: position,
                reason: "a newer version of the record was applied before; it fires nothing")
        case .duplicate(let position): add("duplicate", at: position)
        case .conflict(let position):
            conflicts += 1
            add(
                "conflict", at: position,
                reason: "another change with the same ID or position was appended before")
        case nil: preconditionFailure("the log answered for fewer changes than it was given")
        }
    }

    mutating func addRefusal(path: String, reason: String) {
        refusals += 1
        entries.append(
            ["status": "refused", "path": .string(path), "reason": .string(reason)])
    }

    mutating func addIgnored(reason: String) {
        entries.append(["status": "ignored", "reason": .string(reason)])
    }

    mutating func add(parked number: UInt64, _ body: ParkedBody) {
        parked += 1
        entries.append([
            "status": "parked", "number": .integer(Int64(clamping: number)),
            "path": .string(body.path), "reason": .string(body.reason),
        ])
    }

    /// Notes that the body with the conflicts is parked: there is nothing to refuse any more.
    mutating func parkConflicts(_ number: UInt64, _ body: ParkedBody) {
        conflicts = 0
        add(parked: number, body)
    }

    private mutating func add(
        _ status: String, at position: LogPosition, reason: String? = nil
    ) {
        var object: JSONObject = [
            "status": .string(status), "position": .string(position.description),
        ]
        if status == "duplicate" { object["duplicate"] = true }
        object["reason"] = reason.map { .string($0) }
        entries.append(.object(object))
    }

    /// The answer to the webhook: 409 for a conflict and 422 for a refusal, with every result, else
    /// 200.
    ///
    /// A batch with a refused change is answered 422 although its other changes are appended: a
    /// source that looks at nothing but the status must not believe that all went well, and what it
    /// repeats is known.
    func answer(requiredAnswer: JSONObject?, uuid: String) -> RelayAnswer {
        let results: JSONValue = .array(entries)
        if conflicts > 0 {
            return failure(
                APIError(.conflict, "\(conflicts) of \(entries.count) changes conflict"),
                results, uuid)
        }
        if refusals > 0 {
            return failure(
                APIError(
                    .badRequest, "\(refusals) of \(entries.count) changes are refused",
                    httpStatus: 422), results, uuid)
        }
        return RelayAnswer(json: .object(requiredAnswer ?? ["results": results]))
    }

    private func failure(_ error: APIError, _ results: JSONValue, _ uuid: String) -> RelayAnswer {
        var error = error
        error.details["results"] = results
        return RelayAnswer(error, uuid: uuid)
    }
}
