package import RelayModel
package import Storage

extension RelayStore {
    package func sweepPart(
        _ sweep: SnapshotSweep, after place: SweepPlace?, at now: Timestamp
    ) async throws -> SweptPart {
        let slice = try await read { db in
            try UnseenRecords(sweep: sweep, container: try db.container(sweep.container))
                .slice(after: place, in: db)
        }
        guard !slice.found.isEmpty else { return SweptPart(next: slice.end, deleted: 0, last: nil) }
        return try await admitted(sweep.container) { store in
            try await store.write(
                .intake, of: sweep.container, changes: slice.found.count
            ) { commit -> SweptPart in
                try Self.delete(slice, by: sweep, store.settings, at: now, in: &commit)
            }
        }
    }

    private static func delete(
        _ slice: UnseenRecords.Slice, by sweep: SnapshotSweep, _ settings: StoreSettings,
        at now: Timestamp, in commit: inout OpenCommit
    ) throws -> SweptPart {
        let container = try commit.container(sweep.container)
        let deletions = try UnseenRecords(sweep: sweep, container: container)
            .deletions(of: slice.found, in: commit.db)
        guard !deletions.isEmpty else { return SweptPart(next: slice.end, deleted: 0, last: nil) }
        let step = AppendStep(
            changes: try deletions.map { deletion in
                try PreparedChange(ChangeToAppend(deletion.change, key: nil))
            }, delivery: nil, source: sweep.source, now: now, settings: settings)
        let outcomes = try step.run(in: &commit, container: container)
        let positions = outcomes.compactMap { outcome -> LogPosition? in
            if case .appended(let position) = outcome { position } else { nil }
        }
        // If the records are large, only the first ones fit in one transaction.
        let isWhole = outcomes.count == deletions.count
        return SweptPart(
            next: isWhole ? slice.end : deletions[outcomes.count - 1].place,
            deleted: positions.count, last: positions.last)
    }
}
