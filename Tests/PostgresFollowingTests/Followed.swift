import ChangeSources
import PostgresFollowing
import PostgresLink
import RelayModel
import RelayTestKit
import Synchronization

/// A follower of a database of a test server, and what it posted.
final class Followed: Sendable {
    private struct Waiter {
        let isMet: @Sendable (Seen) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    /// What the test can see of the follower.
    struct Seen: Sendable {
        var requests: [[FollowedRow]] = []
        /// All rows that were posted, accepted or not.
        var attempted: [FollowedRow] = []
        var attempts = 0
        var words: [String] = []
        var sentences: [String] = []
        /// The ends of snapshots, all of which are accepted.
        var ends: [SnapshotEnd] = []
        /// The table whose rows are parked.
        var parked: String?
        /// How many requests are refused before the next one is accepted.
        var refusals = 0
        /// How many requests are accepted before all others are refused.
        var allowance = Int.max

        var isRefusing: Bool { refusals > 0 || allowance == 0 }

        var rows: [FollowedRow] { requests.flatMap { $0 } }
    }

    private let state = Mutex((seen: Seen(), waiters: [Waiter]()))

    var seen: Seen { state.withLock { $0.seen } }

    /// Refuses the next `count` requests, as if the relay was away.
    func refuse(_ count: Int) { state.withLock { $0.seen.refusals = count } }

    /// Refuses all requests after the next `count`.
    func refuse(after count: Int) { state.withLock { $0.seen.allowance = count } }

    private func change(_ body: (inout Seen) -> Void) {
        let due = state.withLock { state in
            body(&state.seen)
            let seen = state.seen
            let due = state.waiters.filter { $0.isMet(seen) }
            state.waiters.removeAll { $0.isMet(seen) }
            return due
        }
        for waiter in due { waiter.continuation.resume() }
    }

    /// Waits until the condition holds.
    func until(_ isMet: @escaping @Sendable (Seen) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isMetAlready = state.withLock { state in
                if !isMet(state.seen) {
                    state.waiters.append(Waiter(isMet: isMet, continuation: continuation))
                    return false
                }
                return true
            }
            if isMetAlready { continuation.resume() }
        }
    }

    func follower(
        _ settings: FollowSettings, clock: any Clock<Duration> = ContinuousClock()
    ) throws -> PostgresFollower {
        try PostgresFollower(
            settings, clock: clock, now: { Timestamp(seconds: 1_700_000_000) },
            changed: { [self] status in
                change { seen in
                    seen.words.append(status.word)
                    seen.sentences.append(status.sentence)
                }
            },
            end: { [self] end in take(end) }
        ) { [self] rows in { [self] in take(rows) } }
    }

    private func take(_ end: SnapshotEnd) -> RowsTaken {
        change { $0.ends.append(end) }
        return .taken
    }

    /// Parks the rows of `table` from now on.
    func park(_ table: String) { state.withLock { $0.seen.parked = table } }

    private func take(_ rows: [FollowedRow]) -> RowsTaken {
        let isRefused = state.withLock { $0.seen.isRefusing }
        change { seen in
            seen.attempts += 1
            if seen.attempted.count < 10 { seen.attempted += rows }
            if seen.refusals > 0 { seen.refusals -= 1 }
            guard !isRefused else { return }
            seen.allowance -= 1
            seen.requests.append(rows)
        }
        let parked = rows.count { $0.table == seen.parked }
        return isRefused
            ? .not(.relayUnreachable("it is away")) : RowExceptions(parked: parked).outcome
    }

    /// Follows a database while `body` runs.
    func follow<Outcome: Sendable>(
        _ settings: FollowSettings, _ body: @Sendable (Followed) async throws -> Outcome
    ) async throws -> Outcome {
        try await run(settings) { _ in try await body(self) }
    }

    /// Follows a database while `body` runs, which gets the follower.
    func run<Outcome: Sendable>(
        _ settings: FollowSettings, _ body: (PostgresFollower) async throws -> Outcome
    ) async throws -> Outcome {
        let follower = try follower(settings)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            let outcome = try await body(follower)
            group.cancelAll()
            return outcome
        }
    }

    /// Returns the problem that ends following before it begins, or `nil` if there is none.
    func problem(_ settings: FollowSettings) async throws -> FollowProblem? {
        do {
            try await follower(settings).run()
            return nil
        } catch let problem as FollowProblem {
            return problem
        }
    }
}

extension PostgresServer {
    /// Returns the settings for an outbox of `tables`, which the follower creates.
    func outbox(
        _ database: String, _ tables: [String] = ["public.t"],
        _ change: (inout FollowSettings) throws -> Void = { _ in }
    ) throws -> FollowSettings {
        var settings = try settings(database) {
            $0.way = .outbox
            $0.tables = tables
        }
        try change(&settings)
        return settings
    }

    func settings(
        _ database: String, _ change: (inout FollowSettings) -> Void = { _ in }
    ) throws -> FollowSettings {
        var settings = FollowSettings(
            try PostgresTarget("host=\(folder) user=postgres dbname=\(database)"))
        settings.slot = database
        settings.makes = true
        settings.endsBeforeItBegan = true
        change(&settings)
        return settings
    }
}

/// Returns a row as a line of text.
func line(_ row: FollowedRow) -> String {
    func image(_ image: RecordImage?) -> String {
        guard let image else { return "-" }
        let text = JSONValue.object(FieldValue.notation(fields: image.fields)).text
        return image.completeness == .full ? text : "~" + text
    }
    let origin = [row.deviceID, row.userID].compactMap { $0 }.joined(separator: "/")
    return "\(row.operation.rawValue) \(row.table)[\(row.key.joined(separator: ","))] "
        + "\(image(row.before)) \(image(row.after))"
        + (row.isSnapshot ? " snapshot" : "") + (origin.isEmpty ? "" : " by \(origin)")
}
