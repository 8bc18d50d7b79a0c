import RelayModel
import Storage
import Synchronization

/// Deletes the records that completed snapshots did not contain, in parts, and remembers how far it
/// is.
///
/// A sweep reads everything that a container keeps. One request does a bounded part of it, and the
/// follower asks again until it is complete. After a restart of the relay, a sweep begins again;
/// deleted records stay deleted.
final class SnapshotSweeps: Sendable {
    private struct Owner: Hashable {
        let container: ContainerKey
        let source: SourceName
    }

    private let log: any IntakeLog
    /// How far the current sweep of each source is; completed sweeps are removed.
    private let places = Mutex<[Owner: (sweep: SnapshotSweep, place: SweepPlace)]>([:])

    /// The number of parts in one request.
    ///
    /// Each part reads 5000 rows, or deletes 32 records, in some hundredths of a second, and a
    /// follower waits one minute for the answer.
    private static let partsAtOnce = 40

    init(_ log: any IntakeLog) {
        self.log = log
    }

    /// Does the next parts of a sweep.
    ///
    /// - Returns: Whether the sweep is complete, and the number of records that this call
    ///   deleted.
    func goOn(
        _ sweep: SnapshotSweep, by turns: ContainerTurns, at now: Timestamp
    ) async throws -> (isComplete: Bool, deleted: Int) {
        let owner = Owner(container: sweep.container, source: sweep.source)
        var place = places.withLock { places in
            places[owner].flatMap { $0.sweep == sweep ? $0.place : nil }
        }
        var deleted = 0
        for _ in 0..<Self.partsAtOnce {
            let start = place
            let part = try await turns.run(
                of: sweep.container, changes: 1, besides: { $0.deleted - 1 }, last: { $0.last }
            ) {
                try await log.sweepPart(sweep, after: start, at: now)
            }
            deleted += part.deleted
            place = part.next
            note(place, of: sweep, for: owner)
            if place == nil { return (true, deleted) }
        }
        return (false, deleted)
    }

    private func note(_ place: SweepPlace?, of sweep: SnapshotSweep, for owner: Owner) {
        places.withLock { $0[owner] = place.map { (sweep, $0) } }
    }
}
