import Foundation
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import StoragePostgreSQL

/// What a store does while its server is away, and after the server is back.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct OutageTests {
    /// A server that the test stops and starts again, and a store on it.
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

        /// Starts the server with the options that it had before.
        func startAgain() throws { try control("-l \(server.folder)/log restart") }

        private func control(_ command: String) throws {
            let user = getuid() == 0 ? "runuser -u postgres -- " : ""
            let program = (PostgresServer.programs ?? "") + "/pg_ctl"
            // Closes inherited descriptors. Otherwise the server would keep the pipe open that
            // reports the end of this child, and the test would wait for the server.
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

        /// Repeats the query until its answer is `answer`, yielding to other tasks meanwhile.
        func wait(for answer: String, of question: String) async throws {
            #expect(try await Turns.yield { try server.sql(question) == answer })
        }

        func append(_ name: String) async throws -> [AppendOutcome] {
            try await store.append(
                [Sample.unkeyed(name)], container: Sample.container, source: Sample.source,
                at: Sample.moment(0))
        }

        /// Returns whether appending a change fails with a temporary `unavailable` error.
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

    @Test
    func `while a commit is in doubt other requests are refused, and the commit is found later`()
        async throws
    {
        let home = try await Home()
        _ = try await home.append("first")
        // A commit that waits for a standby is done on this server, but is not acknowledged.
        try home.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try home.server.sql("SELECT pg_reload_conf()")
        try await home.wait(for: "nobody", of: "SHOW synchronous_standby_names")
        let doubtful = Task { try await home.append("second") }
        try await home.wait(
            for: "1", of: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        // Readiness reports it.
        #expect(
            await Turns.yield { home.store.shortage?.contains("standby may be away") == true })
        try home.stop()
        #expect(await home.isTurnedAway("third"))
        // This removes the setting of the standby; the server's command line keeps the other
        // options.
        try PostgresServer.run(
            ["truncate", "-s", "0", home.server.folder + "/data/postgresql.auto.conf"])
        try home.startAgain()
        #expect(try await doubtful.value == [.appended(LogPosition(2))])
        #expect(try await home.append("third") == [.appended(LogPosition(3))])
        #expect(await Turns.yield { home.store.shortage == nil })
        await home.store.close()
        home.server.end()
    }

    /// Makes the writer of `inbox` commit a request that writes nothing.
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

    /// The last step of the delivery worker may be the commit in doubt, and the store is closed
    /// after it.
    @Test(.timeLimit(.minutes(5)))
    func `an end does not wait without limit for a commit in doubt`()
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
        // Requests that come while the commit is in doubt are refused.
        await #expect(throws: StorageError.self) { try await Self.commit(by: inbox) }
        session.expectEnd()
        hasPassed.withLock { $0 = true }
        let end = await #expect(throws: StorageError.self) { try await doubtful.value }
        #expect("\(String(describing: end))".contains("it is unknown whether"))
        inbox.end(.closed("the test has ended"))
        home.server.end()
    }

    @Test func `a missing standby server blocks neither standing by nor an end`() async throws {
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
        // The owner can still renew its lease and give it back.
        #expect(home.store.shortage == nil)
        let began = ContinuousClock.now
        await home.store.close()
        #expect(began.duration(to: .now) < .seconds(20))
        #expect(try home.server.sql("SELECT owner IS NULL FROM relay.ownership") == "t")
        home.server.end()
    }

    @Test(.timeLimit(.minutes(15)))
    func `all waiting requests are told at once that the server is away`() async throws {
        let home = try await Home()
        try home.stop()
        // If each waited as long as the first, all of them together would take half an hour.
        let count = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<2000 { group.addTask { await home.isTurnedAway("\(number)") } }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(count == 2000)
        // Readiness reports the outage, and later that it is over.
        #expect(await Turns.yield { home.store.shortage == "the database cannot be reached" })
        try home.startAgain()
        #expect(try await home.append("first") == [.appended(LogPosition(1))])
        #expect(await Turns.yield { home.store.shortage == nil })
        await home.store.close()
        home.server.end()
    }
}
