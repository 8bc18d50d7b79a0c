import ChangeSources
import PostgresLink
import RelayModel
import RelayTestKit
import Synchronization
import Testing

@testable import PostgresFollowing

/// Where rows wait that the relay has not taken yet.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct BacklogTests {
    @Test func `while the relay is away waiting rows are on the server and not in memory`() throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY, v text)")
        let memory = FollowMemory(
            FollowStatus(since: Timestamp(seconds: 0)), wake: try #require(PostgresWake()))
        let watch = LookedAtWatch()
        let opening = try SlotOpening(
            try server.settings(name) { $0.takesSnapshot = false }, memory: memory,
            watch: { watch.time })
        let goesOn = try opening.goesOn()
        #expect(!goesOn)
        _ = try opening.begin()
        try opening.keep()
        let stream = try opening.stream()
        try server.sql(
            "INSERT INTO t SELECT n, repeat('v', 100) FROM generate_series(1, 15000) n", in: name)
        let end = try server.sql("SELECT pg_current_wal_lsn()")
        // Takes as many batches as are prepared ahead, and one that is being posted.
        for _ in 0...RowBatch.mostReady { _ = try stream.nextBatch() }
        let question = """
            SELECT sent_lsn >= '\(end)' FROM pg_stat_replication
            JOIN pg_replication_slots ON active_pid = pid WHERE slot_name = '\(name)'
            """
        // Each reading of the clock ends the wait that follows, and takes as long as a query.
        // Meanwhile the server sends what it can.
        watch.atEachLook { count in
            memory.wake.signal()
            if count > 150 || (try? server.sql(question)) == "t" { memory.stop() }
        }
        #expect(throws: CancellationError.self) { try stream.awaitTurn() }
        let isSent = try withExtendedLifetime(stream) { try server.sql(question) }
        #expect(isSent == "f")
    }

    @Test func `large rows after small ones are not held together in a snapshot`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY, v text);
            INSERT INTO t SELECT n, 'v' FROM generate_series(1, 2000) n;
            INSERT INTO t SELECT n, repeat('v', 100000) FROM generate_series(2001, 2100) n
            """)
        let requests = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            return followed.seen.requests
        }
        let sizes = requests.map { rows in
            rows.reduce(0) { sum, row in
                guard case .string(let text)? = row.after?.fields["v"] else { return sum }
                return sum + text.utf8.count
            }
        }
        #expect(requests.flatMap { $0 }.count == 2100)
        #expect(sizes.allSatisfy { $0 <= RowBuffer.maximumBytes + 100_000 }, "\(sizes)")
    }

    @Test func `a log that the server retains during a snapshot is warned about`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        let followed = Followed()
        followed.refuse(.max)
        let follower = try followed.follower(
            try server.settings(name) { $0.retainedWarning = 1_048_576 }, clock: HurriedClock())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            await followed.until { $0.attempts > 0 }
            try server.sql("SELECT pg_logical_emit_message(false, 'x', repeat('x', 3000000))")
            _ = await Turns.yield { follower.status.warning != nil }
            let warning = follower.status.warning ?? ""
            #expect(warning.contains("of its log for the slot"), "\(warning)")
            followed.refuse(0)
            await followed.until { $0.words.last == "following" }
            group.cancelAll()
        }
    }

    @Test func `values left out of a snapshot are counted permanently`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE t (id int PRIMARY KEY, v text);
            INSERT INTO t SELECT 1, string_agg(md5(i::text), '') FROM generate_series(1, 40000) i
            """)
        let followed = Followed()
        try await followed.run(try server.settings(name)) { follower in
            await followed.until { $0.words.last == "following" }
            #expect(follower.status.valuesLeftOut == 1)
            // The next look at the slot updates the counts.
            _ = await Turns.yield { follower.status.retainedBytes != nil }
            #expect(follower.status.valuesLeftOut == 1)
        }
    }
}

/// A clock that counts its readings and runs a closure at each.
private final class LookedAtWatch: Sendable {
    private let start = ContinuousClock.now
    private let state = Mutex<(looks: Int, body: (@Sendable (Int) -> Void)?)>((0, nil))

    var time: Duration {
        let (looks, body) = state.withLock { state in
            state.looks += 1
            return state
        }
        body?(looks)
        return start.duration(to: .now)
    }

    func atEachLook(_ body: @escaping @Sendable (Int) -> Void) {
        state.withLock { $0 = (0, body) }
    }
}
