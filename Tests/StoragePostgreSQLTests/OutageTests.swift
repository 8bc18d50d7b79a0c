import Foundation
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import StoragePostgreSQL

/// What a store does while its server is away, and once it is back.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct OutageTests {
    /// A server that is stopped and started again, and a store on it.
    private struct Home {
        let server: PostgresServer
        let store: RelayStore

        init() async throws {
            server = try PostgresServer(["fsync=on", "max_connections=40"])
            store = try RelayStore.open(
                try PostgresPlace(url: server.url(), schema: "relay"), as: .forTests(),
                settings: .forTests)
            try await store.save(
                ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        }

        func stop() throws { try control("-m immediate stop") }

        /// Starts it with the options that it had.
        func startAgain() throws { try control("-l \(server.folder)/log restart") }

        private func control(_ command: String) throws {
            let user = getuid() == 0 ? "runuser -u postgres -- " : ""
            let program = (PostgresServer.programs ?? "") + "/pg_ctl"
            // What tells of a child's end must not be the server's too, or it would be waited for.
            try PostgresServer.run([
                "bash", "-c",
                """
                for each in /proc/$$/fd/*; do
                    number=${each##*/}; [ "$number" -le 2 ] || eval "exec $number>&-"
                done
                \(user)\(program) -D \(server.folder)/data -w \(command) </dev/null
                """,
            ])
        }

        /// Asks until the answer is `answer`, and lets others go on meanwhile.
        func wait(for answer: String, of question: String) async throws {
            #expect(try await Turns.yield { try server.sql(question) == answer })
        }

        func append(_ name: String) async throws -> [AppendOutcome] {
            try await store.append(
                [Sample.unkeyed(name)], container: Sample.container, source: Sample.source,
                at: Sample.moment(0))
        }

        /// Whether the append of a change ends with the database being away, which passes.
        func isTurnedAway(_ name: String) async -> Bool {
            do {
                _ = try await append(name)
                return false
            } catch {
                guard case StorageError.unavailable = error else { return false }
                return true
            }
        }
    }

    @Test func `while a commit is in doubt others are turned away, and it is found in the end`()
        async throws
    {
        let home = try await Home()
        _ = try await home.append("first")
        // A commit that waits for a standby is there, and nobody is told of it.
        try home.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try home.server.sql("SELECT pg_reload_conf()")
        try await home.wait(for: "nobody", of: "SHOW synchronous_standby_names")
        let doubtful = Task { try await home.append("second") }
        try await home.wait(
            for: "1", of: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        // Whoever asks whether the relay is ready is told.
        #expect(
            await Turns.yield { home.store.shortage?.contains("standby may be away") == true })
        try home.stop()
        #expect(await home.isTurnedAway("third"))
        // The server's own options stay, but for the standby.
        try PostgresServer.run(
            ["truncate", "-s", "0", home.server.folder + "/data/postgresql.auto.conf"])
        try home.startAgain()
        #expect(try await doubtful.value == [.appended(LogPosition(2))])
        #expect(try await home.append("third") == [.appended(LogPosition(3))])
        #expect(await Turns.yield { home.store.shortage == nil })
        await home.store.close()
        home.server.end()
    }

    /// Has the writer of `inbox` commit nothing.
    private static func commit(by inbox: WriteInbox) async throws {
        try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<Void, any Error>) in
            let request = WriteRequest(
                lane: .own, container: nil, changes: 1, bytes: 0,
                perform: { _ in
                    return { continuation.resume() }
                },
                fail: { continuation.resume(throwing: $0) })
            if let refusal = inbox.submit([request]) { continuation.resume(throwing: refusal) }
        }
    }

    /// The worker's last step may be the one in doubt, and the store is closed after that.
    @Test(.timeLimit(.minutes(5)))
    func `an end that was asked for does not wait for a commit in doubt without end`()
        async throws
    {
        let home = try await Home()
        let head = try await home.store.head()
        await home.store.close()
        let began = ContinuousClock.now
        let hasPassed = Mutex(false)
        let claimant = StoreClaimant.forTests()
        let session = PostgresSession(
            place: try PostgresPlace(url: home.server.url(), schema: "relay"),
            watch: {
                let skipped = hasPassed.withLock { $0 } ? Duration.seconds(1000) : Duration.zero
                return began.duration(to: .now) + skipped
            }, name: claimant.sessionName)
        guard case .owned(let epoch) = try Ownership.claim(claimant, try session.connect()) else {
            Issue.record("somebody else owns the store")
            return
        }
        let inbox = WriteInbox(settings: .forTests)
        let opened = OpenedStore(
            identity: UUIDBytes(high: 0, low: 1), epoch: epoch,
            horizon: LogHorizon(head: head, settings: .forTests), endedDevices: EndedDevices([]))
        let writer = ServerWriter(
            session, epoch: epoch, inbox: inbox, opened: opened, settings: .forTests)
        writer.start {}
        try await Self.commit(by: inbox)
        try home.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try home.server.sql("SELECT pg_reload_conf()")
        try await home.wait(for: "nobody", of: "SHOW synchronous_standby_names")
        let doubtful = Task { try await Self.commit(by: inbox) }
        try await home.wait(
            for: "1", of: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        try home.stop()
        // Who is turned away comes while it is asked about.
        await #expect(throws: StorageError.self) { try await Self.commit(by: inbox) }
        session.expectEnd()
        hasPassed.withLock { $0 = true }
        let end = await #expect(throws: StorageError.self) { try await doubtful.value }
        #expect("\(String(describing: end))".contains("nobody knows"))
        inbox.end(.closed("the test has ended"))
        home.server.end()
    }

    @Test func `a standby that is away keeps nobody from standing by, and no end`() async throws {
        let home = try await Home()
        try home.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try home.server.sql("SELECT pg_reload_conf()")
        try await home.wait(for: "nobody", of: "SHOW synchronous_standby_names")
        let place = try PostgresPlace(url: home.server.url(), schema: "relay")
        let claimant = StoreClaimant(
            name: "other", identity: (0..<16).map { _ in .random(in: 0...255) }, version: "1")
        let refusal = #expect(throws: StorageError.self) {
            try RelayStore.open(place, as: claimant, settings: .forTests)
        }
        guard case .locked? = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        // The owner renews its lease, and gives it back.
        #expect(home.store.shortage == nil)
        let began = ContinuousClock.now
        await home.store.close()
        #expect(began.duration(to: .now) < .seconds(20))
        #expect(try home.server.sql("SELECT owner IS NULL FROM relay.ownership") == "t")
        home.server.end()
    }

    @Test(.timeLimit(.minutes(15)))
    func `all that wait are told at once that the server is away`() async throws {
        let home = try await Home()
        try home.stop()
        // One by one each would wait as long as the first, and all of them half an hour.
        let count = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<2000 { group.addTask { await home.isTurnedAway("\(number)") } }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(count == 2000)
        // Whoever asks whether the relay is ready is told, and told when it is again.
        #expect(await Turns.yield { home.store.shortage == "the database cannot be reached" })
        try home.startAgain()
        #expect(try await home.append("first") == [.appended(LogPosition(1))])
        #expect(await Turns.yield { home.store.shortage == nil })
        await home.store.close()
        home.server.end()
    }
}
