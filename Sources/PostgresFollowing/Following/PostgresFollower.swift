//  PostgresFollowing: reads a PostgreSQL database as changes of rows, from its log or from an
//  outbox that triggers fill (docs/postgresql.md).
//
//  Concurrency: libpq blocks, so a follower has a thread of its own, on which it makes every call;
//  tasks beside it post the changes. Invariants: a slot is confirmed only up to where everything
//  is in the relay; what is sent again has the same position; rows are held for one request and
//  the next three, however large a transaction is. Decisions are values: what messages mean
//  (Wire), which rows they become (Rows), what is posted together (RowBuffer). It may import
//  RelayModel, ChangeSources and PostgresLink.

package import ChangeSources
import PostgresLink
package import RelayModel

/// Takes prepared rows into the relay; it may be called again until they are taken.
package typealias PreparedRows = @Sendable () async -> RowsTaken

/// Lets the relay delete the records of tables that a snapshot did not contain, and returns once
/// that is done.
package typealias SnapshotEnding = @Sendable (SnapshotEnd) async -> RowsTaken

/// Follows one PostgreSQL database, by a slot or an outbox, while it runs.
package final class PostgresFollower: Sendable {
    private let settings: FollowSettings
    private let memory: FollowMemory
    private let thread: PostgresThread
    private let clock: any Clock<Duration>
    private let watch: @Sendable () -> Duration
    private let now: @Sendable () -> Timestamp
    private let prepare: @Sendable ([FollowedRow]) async -> PreparedRows
    private let end: SnapshotEnding
    private let changed: @Sendable (FollowStatus) -> Void

    /// The first and the longest wait before another attempt.
    private static let waits = (first: Duration.seconds(1), longest: Duration.seconds(60))
    /// The time between two checks of what the server keeps while the existing rows are read.
    private static let lookPause = Duration.seconds(10)

    /// Creates a follower.
    ///
    /// - Parameters:
    ///   - settings: The database, and how to follow it.
    ///   - clock: Measures waits.
    ///   - now: Returns the time of day.
    ///   - changed: Called with each new state.
    ///   - end: Takes the end of a snapshot; it may be called again.
    ///   - prepare: Does all work on rows that is possible while earlier ones are being taken. It
    ///     returns the function that takes them into the relay, all in one request.
    /// - Throws: ``FollowProblem`` if the process has no file descriptor left.
    package init(
        _ settings: FollowSettings, clock: any Clock<Duration>,
        now: @escaping @Sendable () -> Timestamp,
        changed: @escaping @Sendable (FollowStatus) -> Void,
        end: @escaping SnapshotEnding,
        prepare: @escaping @Sendable ([FollowedRow]) async -> PreparedRows
    ) throws {
        guard let wake = PostgresWake(), let thread = PostgresThread() else {
            throw FollowProblem.unreachable("the process has no file descriptor left")
        }
        self.settings = settings
        self.clock = clock
        self.now = now
        self.changed = changed
        self.prepare = prepare
        self.end = end
        self.thread = thread
        watch = Self.watch(clock)
        memory = FollowMemory(FollowStatus(since: now()), wake: wake)
    }

    private static func watch(_ clock: some Clock<Duration>) -> @Sendable () -> Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }

    /// The present state.
    package var status: FollowStatus { memory.current.status }

    /// Follows until the task is cancelled.
    ///
    /// - Throws: ``FollowProblem`` if following must end at a problem before it has begun.
    package func run() async throws {
        thread.start()
        defer { thread.end() }
        try await withTaskCancellationHandler {
            var wait = Self.waits.first
            while !Task.isCancelled {
                let began = watch()
                do {
                    try await follow()
                } catch let problem as FollowProblem {
                    // The wait of the last interruption does not apply to a later one.
                    if case .following = status.state, watch() - began > wait {
                        wait = Self.waits.first
                    }
                    enter(.waiting(problem))
                    if ends(at: problem) { throw problem }
                } catch is CancellationError {
                    return
                }
                if watch() - began > Self.waits.longest { wait = Self.waits.first }
                try? await clock.sleep(for: wait)
                wait = min(wait * 2, Self.waits.longest)
            }
        } onCancel: {
            memory.stop()
        }
    }

    /// Returns whether following ends at a problem: it has not begun, and a retry does not help.
    private func ends(at problem: FollowProblem) -> Bool {
        settings.endsBeforeItBegan && problem.needsSomebody && !memory.current.hasFollowed
    }

    private func enter(_ state: FollowStatus.State) {
        let moment = now()
        memory.change { memory in
            if memory.status.state != state { memory.status.since = moment }
            memory.status.state = state
        }
        changed(status)
    }

    /// Connects and follows until an error.
    private func follow() async throws {
        if case .waiting = status.state {} else { enter(.connecting) }
        memory.change { $0.outstanding = 0 }
        let (origin, goesOn) = try await thread.runUnlessCancelled { [settings, memory, watch] in
            let origin = try Self.origin(settings, memory, watch)
            return (origin, try origin.goesOn())
        }
        if !goesOn { try await begin(origin) }
        let stream = try await thread.run { try origin.stream() }
        memory.change { $0.hasFollowed = true }
        enter(.following)
        try await pass(stream)
    }

    private static func origin(
        _ settings: FollowSettings, _ memory: FollowMemory,
        _ watch: @escaping @Sendable () -> Duration
    ) throws -> any RowOrigin {
        switch settings.way {
        case .slot: try SlotOpening(settings, memory: memory, watch: watch)
        case .outbox: try OutboxOpening(settings, memory: memory, watch: watch)
        }
    }

    /// Hands over the existing rows, and then the point from which changes are read.
    private func begin(_ origin: any RowOrigin) async throws {
        let reader = try await thread.run { try origin.begin() }
        if let reader {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await self.watchOver(origin) }
                try await handOver(reader)
                group.cancelAll()
            }
            // From here on the stream sets the warnings.
            memory.change { $0.status.warning = nil }
        }
        try await thread.run { try origin.keep() }
    }

    /// Checks what the server keeps until the task is cancelled; errors are left to the code that
    /// reads rows.
    private func watchOver(_ origin: any RowOrigin) async throws {
        while true {
            try await clock.sleep(for: Self.lookPause)
            try? await thread.run { try origin.look() }
        }
    }

    private func handOver(_ reader: SnapshotReader) async throws {
        var rows: UInt64 = 0
        var leftOut: UInt64 = 0
        var incomplete: Set<SnapshotEnd.Table> = []
        while let batch = try await thread.run({ try ServerAccess.told { try reader.next() } }) {
            rows += UInt64(batch.rows.count)
            let (table, all) = try await thread.run { (reader.table, reader.valuesLeftOut) }
            let new = all - leftOut
            leftOut = all
            memory.change { $0.status.valuesLeftOut += new }
            enter(.takingSnapshot(table: table, rows: rows))
            memory.change { $0.outstanding += 1 }
            let outcome = try await hand(over: batch, await prepare(batch.rows))
            // A batch is of one table.
            if case .takenExcept(let exceptions) = outcome, exceptions.parked > 0,
                let row = batch.rows.first
            {
                incomplete.insert(SnapshotEnd.Table(schema: row.schema, name: row.table))
            }
        }
        try await finish(try await thread.run { reader.end }.without(incomplete))
    }

    /// Lets the relay delete what the snapshot did not contain.
    ///
    /// This comes before the slot becomes permanent, so a follower that is killed meanwhile repeats
    /// the snapshot and its end.
    private func finish(_ snapshot: SnapshotEnd) async throws {
        for part in snapshot.parts {
            memory.change { $0.outstanding += 1 }
            try await hand(over: RowBatch()) { [end] in await end(part) }
        }
    }

    /// Hands over the batches of a stream, one after the other; meanwhile the next ones are
    /// prepared, and the stream reads on.
    private func pass(_ stream: any RowStream) async throws {
        let (ready, line) = AsyncStream<(RowBatch, PreparedRows)>.makeStream()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                // Two at the same time could be taken in the wrong order.
                for await (batch, rows) in ready { try await self.hand(over: batch, rows) }
            }
            while true {
                let batch = try await thread.run {
                    try ServerAccess.told { try stream.nextBatch() }
                }
                line.yield((batch, await prepare(batch.rows)))
                try await thread.run { try ServerAccess.told { try stream.awaitTurn() } }
            }
        }
    }

    /// Hands over a batch, with retries until it is taken.
    @discardableResult
    private func hand(over batch: RowBatch, _ take: PreparedRows) async throws -> RowsTaken {
        let former = status.state
        var wait = Self.waits.first
        var outcome = await take()
        while case .not(let problem) = outcome {
            try Task.checkCancellation()
            if ends(at: problem) { throw problem }
            enter(.waiting(problem))
            try await clock.sleep(for: wait)
            wait = min(wait * 2, Self.waits.longest)
            outcome = await take()
        }
        memory.note(outcome)
        if wait > Self.waits.first { enter(former) }
        memory.accepted(batch)
        return outcome
    }
}
