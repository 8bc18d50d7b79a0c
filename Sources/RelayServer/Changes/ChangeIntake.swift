import ChangeSources
import RelayModel
import Storage

/// Appends the changes of webhooks to the log; replayed parked changes take the same way.
struct ChangeIntake: Sendable {
    let log: any IntakeLog
    let shadow: any Shadow
    let registry: any ParkedChangeRegistry
    let turns: ContainerTurns
    private let sweeps: SnapshotSweeps

    init(
        log: any IntakeLog, shadow: any Shadow, registry: any ParkedChangeRegistry,
        turns: ContainerTurns
    ) {
        self.log = log
        self.shadow = shadow
        self.registry = registry
        self.turns = turns
        sweeps = SnapshotSweeps(log)
    }

    /// The changes of a batch in the form in which they are appended.
    struct Prepared: Sendable {
        let changes: [ChangeToAppend]
        /// The schema by which they were normalized.
        let schema: ContainerSchema
    }

    /// Returns the schema of a container, for ``prepare(_:by:)``.
    func schema(of container: ContainerKey) async throws -> ContainerSchema {
        try await shadow.schema(of: container)
    }

    /// Does the work for a batch that does not depend on batches before it, while those are still
    /// appended.
    func prepare(_ batch: DecodedBatch, by schema: ContainerSchema) throws -> Prepared {
        try checkCount(of: batch)
        var changes = normalized(batch, by: schema)
        for index in changes.indices { try changes[index].writeText() }
        return Prepared(changes: changes, schema: schema)
    }

    private func checkCount(of batch: DecodedBatch) throws(APIError) {
        guard batch.items.count <= Limits.maximumChangesPerRequest else {
            throw APIError(
                .quotaExceeded,
                "\(batch.items.count) changes in one request; allowed are "
                    + "\(Limits.maximumChangesPerRequest)")
        }
    }

    /// Appends the changes of a batch, and parks what could not be mapped.
    ///
    /// Appending comes first. If parking then fails, the source sends the batch again; its changes
    /// are recognised by their dedupe keys, and nothing is parked twice.
    ///
    /// A conflict is answered with 409. If the source would stop at that, `webhook` is parked
    /// instead. `prepared` is used if the schema is still the same. If other containers write too,
    /// dear changes are appended in parts. If not all of them were appended, nothing is parked.
    func take(
        _ batch: DecodedBatch, prepared: Prepared? = nil, from source: ChangeSource,
        of container: ContainerKey, posted webhook: (() -> WebhookRequest)? = nil, at now: Timestamp
    ) async throws -> ChangeResults {
        try checkCount(of: batch)
        let schema = try await schema(of: container)
        let changes =
            if let prepared, prepared.schema == schema {
                prepared.changes
            } else {
                normalized(batch, by: schema)
            }
        let (outcomes, refusal) = try await append(
            changes, of: batch, from: source, container, at: now)
        let gone = refusal == nil ? changes : Array(changes.prefix(outcomes.count))
        try await learn(from: gone, of: container)
        var results = ChangeResults()
        if let refusal {
            for outcome in outcomes { results.add(outcome) }
            results.addThrottled(refusal, changes: changes.count - outcomes.count)
            return results
        }
        var remaining = outcomes[...]
        let parked = batch.items.compactMap { item -> ParkedBody? in
            if case .parked(let body) = item { body } else { nil }
        }
        var numbers = try await park(parked, source, container, at: now)[...]
        for item in batch.items {
            switch item {
            case .change: results.add(remaining.popFirst())
            case .refused(let path, let reason): results.addRefusal(path: path, reason: reason)
            case .ignored(let reason): results.addIgnored(reason: reason)
            case .parked(let body):
                results.add(parked: numbers.popFirst() ?? 0, body)
            case .ended(let ended):
                // One request does only a bounded part of the work, so the end of a snapshot must
                // be its only item.
                guard batch.items.count == 1 else {
                    results.addRefusal(
                        path: "",
                        reason: "the end of a snapshot must be posted in a request of its own")
                    continue
                }
                let sweep = SnapshotSweep(
                    container: container, source: source.name, types: ended.types,
                    version: ended.version)
                let swept = try await sweeps.goOn(sweep, by: turns, at: now)
                results.addEnd(isComplete: swept.isComplete, deleted: swept.deleted)
            }
        }
        if results.conflicts > 0, source.onUnmappable == .park, let webhook = webhook?() {
            let error = DecodeError(
                .unmappable,
                reason: "\(results.conflicts) of \(Counted.text(batch.items.count, "change")) "
                    + "\(results.conflicts == 1 ? "has" : "have") the ID or position of another "
                    + "change; the others are appended")
            let body = source.parked(webhook.body, error, webhook.headers)
            let numbers = try await park([body], source, container, at: now)
            results.parkConflicts(numbers.first ?? 0, body)
        }
        return results
    }

    /// Appends the changes, in parts if they may be dear.
    ///
    /// - Returns: The outcomes, and the reason why the rest was not appended, if there is a rest.
    /// - Throws: The refusal of the first part, and every error that is not a refusal.
    private func append(
        _ changes: [ChangeToAppend], of batch: DecodedBatch, from source: ChangeSource,
        _ container: ContainerKey, at now: Timestamp
    ) async throws -> ([AppendOutcome], APIError?) {
        var outcomes: [AppendOutcome] = []
        outcomes.reserveCapacity(changes.count)
        var time = turns.partedTime
        while outcomes.count < changes.count {
            let rest = changes[outcomes.count...]
            let most = turns.portion(of: container)
            let part = most < rest.count ? Array(rest.prefix(most)) : Array(rest)
            do {
                try time.check()
                let gone = try await turns.run(
                    of: container, changes: part.count, besides: { $0.count - part.count },
                    last: { $0.lastAppended }
                ) {
                    try await log.append(
                        part, delivery: batch.key, container: container, source: source.name,
                        at: now)
                }
                outcomes += gone
                // Duplicates need not be followed, so they use none of the time. A client that
                // repeats a long request therefore gets further each time.
                if gone.lastAppended != nil { time.note() }
            } catch StorageError.bounded(let bound, let reason) where !outcomes.isEmpty {
                return (outcomes, APIError(bound: bound, reason: reason))
            }
        }
        return (outcomes, nil)
    }

    /// Returns the changes in the form that clients' own changes have: with the zones of private
    /// databases, and the fields as the schema defines them.
    ///
    /// The dedupe keys stay those of the posted changes.
    private func normalized(
        _ batch: DecodedBatch, by schema: ContainerSchema
    ) -> [ChangeToAppend] {
        batch.items.compactMap { item in
            guard case .change(let change, let key) = item else { return nil }
            return ChangeToAppend(change.withOwnZonesImplied.meant(by: schema), key: key)
        }
    }

    /// Adds new record types and fields to the schema, in a development environment.
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

    /// The maximum number of changes that are parked in one commit, so that others can write in
    /// between.
    ///
    /// A commit takes about fifty kilobytes on disk, and a body of two kilobytes can contain a
    /// thousand changes to park.
    private static let parkedAtOnce = 100

    private func park(
        _ bodies: [ParkedBody], _ source: ChangeSource, _ container: ContainerKey,
        at now: Timestamp
    ) async throws -> [UInt64] {
        var numbers: [UInt64] = []
        for start in stride(from: 0, to: bodies.count, by: Self.parkedAtOnce) {
            let part = bodies[start..<min(start + Self.parkedAtOnce, bodies.count)]
            numbers += try await registry.park(
                part.map { body in
                    ParkedChange(
                        container: container, source: source.name, reason: body.reason,
                        path: body.path,
                        body: Array(try JSONValue.object(body.json).storedText(path: "raw").utf8),
                        headers: body.headers, receivedAt: now)
                })
        }
        return numbers
    }
}

extension [AppendOutcome] {
    /// The position of the last change that was appended now and not before.
    var lastAppended: LogPosition? {
        compactMap { outcome in
            switch outcome {
            case .appended(let position), .appendedAsStale(let position): position
            case .duplicate, .conflict: nil
            }
        }.max()
    }
}
