package import RelayModel
package import Storage

extension RelayStore: IntakeLog, ShardLog {
    package func append(
        _ changes: [ChangeToAppend], delivery: DedupeKey?, container: ContainerKey,
        source: SourceName, at now: Timestamp
    ) async throws -> [AppendOutcome] {
        guard !changes.isEmpty else { return [] }
        return try await admitted(container) { store in
            // The texts are made here, in parallel, and not by the writer.
            let prepared = try changes.map { try PreparedChange($0) }
            let step = AppendStep(
                changes: prepared, delivery: delivery, source: source, now: now,
                settings: store.settings)
            let bytes = prepared.reduce(0) { $0 + $1.body.utf8.count }
            let (largeWrites, large) = (store.largeWrites, store.settings.largeWriteBytes)
            return try await store.write(
                .intake, of: container, changes: changes.count, bytes: bytes,
                isLarge: bytes > large || largeWrites.contains(container),
                lookAhead: { try step.look(ahead: &$1, in: &$0, try $0.container(container)) }
            ) { commit in
                let beginning = commit.bookmark
                let outcomes = try step.run(
                    in: &commit, container: try commit.container(container))
                largeWrites.note(container, isLarge: commit.bytes(since: beginning) > large)
                return outcomes
            }
        }
    }

    /// Lets input from outside for a container in, unless a limit is reached, and counts refusals.
    ///
    /// - Throws: ``StorageError/noRoom(_:)`` or ``StorageError/bounded(_:reason:)``; errors of
    ///   `body`.
    func admitted<Value: Sendable>(
        _ container: ContainerKey, _ body: (RelayStore) async throws -> Value
    ) async throws -> Value {
        do {
            try engine.checkRoom()
            try gate.check(container)
            let value = try await body(self)
            if gate.lacksRoom { gate.noteRoom() }
            return value
        } catch {
            gate.count(error)
            throw error
        }
    }

    package func entries(after position: LogPosition, limit: Int) async throws -> [LogEntry] {
        guard limit > 0 else { return [] }
        if let entries = horizon.entries(after: position, limit: limit) { return entries }
        return try await storedEntries(after: position, limit: limit)
    }

    /// Reads entries from the store, bypassing the entries in memory.
    func storedEntries(after position: LogPosition, limit: Int) async throws -> [LogEntry] {
        try await read { db in
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT logEntry.*, container.name AS containerName, container.environment
                    FROM logEntry JOIN container ON container.id = logEntry.container
                    WHERE position > ? ORDER BY position LIMIT ?
                    """, arguments: [position.stored, limit])
            return try Self.readableEntries(rows)
        }
    }

    /// Returns the entries up to the first one that cannot be read or that exceeds the size of a
    /// page.
    ///
    /// - Throws: ``StorageError/unreadable(_:)`` if the first entry cannot be read.
    private static func readableEntries(_ rows: RowCursor) throws -> [LogEntry] {
        var entries: [LogEntry] = []
        var bytes = 0
        while bytes < Limits.maximumPageBytes, let row = try rows.next() {
            bytes += row.bytes(of: "body")
            do {
                entries.append(try LogEntry(row: row))
            } catch {
                guard entries.isEmpty else { break }
                throw StorageError.unreadable(UnreadableEntry(row: row, reason: "\(error)"))
            }
        }
        return entries
    }

    package func followedEntries(
        after position: LogPosition, limit: Int
    ) async throws -> [FollowedEntry] {
        guard limit > 0 else { return [] }
        if let entries = horizon.entries(after: position, limit: limit) {
            return entries.map(FollowedEntry.init)
        }
        return try await read { db in
            try FollowedEntryReading(db).entries(after: position, limit: limit)
        }
    }

    package func head() async throws -> LogPosition {
        horizon.head
    }

    package func waitForGrowth(beyond position: LogPosition) async throws {
        try await horizon.waitForGrowth(beyond: position)
    }
}
