import ChangeSources
import RelayModel
import Storage

/// Takes what a webhook says into the log; a second attempt at parked changes goes the same way.
struct ChangeIntake: Sendable {
    let log: any IntakeLog
    let shadow: any Shadow
    let registry: any ParkedChangeRegistry
    let turns: ContainerTurns

    /// Appends the changes and parks what could not be mapped.
    ///
    /// Appending comes first: if parking fails, the source repeats itself, the changes are known by
    /// their keys, and nothing is parked twice.
    ///
    /// A conflict is answered 409; where that would stop the source, `webhook` is parked instead.
    func take(
        _ batch: DecodedBatch, from source: ChangeSource, of container: ContainerKey,
        posted webhook: (() -> WebhookRequest)? = nil, at now: Timestamp
    ) async throws -> ChangeResults {
        guard batch.items.count <= Limits.maximumChangesPerRequest else {
            throw APIError(
                .quotaExceeded,
                "\(batch.items.count) changes in one request; allowed are "
                    + "\(Limits.maximumChangesPerRequest)")
        }
        let changes = try await normalized(batch, container)
        var outcomes: [AppendOutcome] = []
        if !changes.isEmpty {
            outcomes = try await turns.run(
                of: container, changes: changes.count, last: { $0.lastAppended }
            ) {
                try await log.append(
                    changes, delivery: batch.key, container: container, source: source.name,
                    at: now)
            }
        }
        var remaining = outcomes[...]
        try await learn(from: changes, of: container)
        var results = ChangeResults()
        for item in batch.items {
            switch item {
            case .change: results.add(remaining.popFirst())
            case .refused(let path, let reason): results.addRefusal(path: path, reason: reason)
            case .ignored(let reason): results.addIgnored(reason: reason)
            case .parked(let body):
                results.add(parked: try await park(body, source, container, at: now), body)
            }
        }
        if results.conflicts > 0, source.onUnmappable == .park, let webhook = webhook?() {
            let error = DecodeError(
                .unmappable,
                reason: "\(results.conflicts) of \(batch.items.count) changes have the ID or "
                    + "position of another change; the others are appended")
            let body = source.parked(webhook.body, error, webhook.headers)
            results.parkConflicts(try await park(body, source, container, at: now), body)
        }
        return results
    }

    /// The changes in the form in which clients' own are: the zones of private databases, and what
    /// the schema says of fields.
    ///
    /// Their keys stay those of what was posted.
    private func normalized(
        _ batch: DecodedBatch, _ container: ContainerKey
    ) async throws -> [ChangeToAppend] {
        let posted = batch.items.compactMap { item -> ChangeToAppend? in
            guard case .change(let change, let key) = item else { return nil }
            return ChangeToAppend(change.withOwnZonesImplied, key: key)
        }
        guard !posted.isEmpty else { return [] }
        let schema = try await shadow.schema(of: container)
        return posted.map { ChangeToAppend($0.change.meant(by: schema), key: $0.key) }
    }

    /// In development the schema learns what record types and fields there are.
    private func learn(
        from changes: [ChangeToAppend], of container: ContainerKey
    ) async throws {
        guard container.environment == .development, !changes.isEmpty else { return }
        var inference = SchemaInference(
            try await shadow.schema(of: container), environment: .development)
        for change in changes { inference.observe(change.change) }
        guard !inference.additions.isEmpty else { return }
        try await shadow.extendSchema(of: container, with: inference.additions)
    }

    private func park(
        _ body: ParkedBody, _ source: ChangeSource, _ container: ContainerKey, at now: Timestamp
    ) async throws -> UInt64 {
        try await registry.park(
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
