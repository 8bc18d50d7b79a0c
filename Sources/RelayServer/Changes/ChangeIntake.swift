import ChangeSources
import RelayModel
import Storage

/// Takes what a webhook says into the log; a second attempt at parked changes goes the same way.
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

    /// Changes of a batch as they are appended.
    struct Prepared: Sendable {
        let changes: [ChangeToAppend]
        /// What they were read by.
        let schema: ContainerSchema
    }

    /// What is known of the records of a container, for ``prepare(_:by:)``.
    func schema(of container: ContainerKey) async throws -> ContainerSchema {
        try await shadow.schema(of: container)
    }

    /// Does what can be done of a batch while others in front of it are still being taken.
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

    /// Appends the changes and parks what could not be mapped.
    ///
    /// Appending comes first: if parking fails, the source repeats itself, the changes are known by
    /// their keys, and nothing is parked twice.
    ///
    /// A conflict is answered 409; where that would stop the source, `webhook` is parked instead.
    /// What was prepared of the batch counts if it still means the same. Beside others, what may be
    /// dear goes in part by part; where not all of it did, nothing is parked.
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
                // A request does the work of one part.
                guard batch.items.count == 1 else {
                    results.addRefusal(path: "", reason: "the end of a snapshot is posted alone")
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

    /// Appends the changes, in parts where they may be dear.
    ///
    /// - Returns: What became of them, and why the rest did not go in, if so.
    /// - Throws: What refuses the first part, and what is more than a refusal.
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
                // What is known already is no news that would be followed: whoever repeats a long
                // request comes further each time.
                if gone.lastAppended != nil { time.note() }
            } catch StorageError.bounded(let bound, let reason) where !outcomes.isEmpty {
                return (outcomes, APIError(bound: bound, reason: reason))
            }
        }
        return (outcomes, nil)
    }

    /// The changes in the form in which clients' own are: the zones of private databases, and what
    /// the schema says of fields.
    ///
    /// Their keys stay those of what was posted.
    private func normalized(
        _ batch: DecodedBatch, by schema: ContainerSchema
    ) -> [ChangeToAppend] {
        batch.items.compactMap { item in
            guard case .change(let change, let key) = item else { return nil }
            return ChangeToAppend(change.withOwnZonesImplied.meant(by: schema), key: key)
        }
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

    /// What is parked in one commit; others write between two.
    ///
    /// A commit takes some fifty kilobytes of the disk, and a body of two has room for a thousand
    /// things to be parked.
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
