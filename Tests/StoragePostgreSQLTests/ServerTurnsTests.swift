import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// Large entries on a server while several containers write.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct ServerTurnsTests {
    private struct Refusal: Error, Equatable {}

    /// Appends an entry of 300 kB.
    private static func append(in commit: inout OpenCommit) throws -> LogPosition {
        try commit.append(
            .devicesEnded(serials: []), storedBody: String(repeating: "x", count: 300_000),
            in: try commit.container(Sample.container), at: Sample.moment(0))
    }

    private static func append(to store: RelayStore, failing: Bool) async throws -> LogPosition {
        try await store.write(of: Sample.container) { commit in
            let position = try append(in: &commit)
            if failing { throw Refusal() }
            return position
        }
    }

    @Test func `a commit of large entries ends early`() async throws {
        let store = try await TestPlace().storeWithContainer()
        func edit() async throws -> [LogPosition] {
            try await store.write(
                Array(0..<16), .independent, of: Sample.container, from: ()
            ) { edits, _, commit in
                try edits.map { _ in try Self.append(in: &commit) }
            }
        }
        let first = store.commitCount
        #expect(try await edit() == (1...16).map { LogPosition($0) })
        #expect(store.commitCount - first == 1)
        try await store.write(of: Sample.otherContainer) { _ in }
        let second = store.commitCount
        // Each edit is a part now, and the fourth reaches the limit.
        #expect(try await edit() == (17...32).map { LogPosition($0) })
        #expect(store.commitCount - second == 4)
        await store.close()
    }

    @Test func `each request is answered once although some fail and others find no room`()
        async throws
    {
        let store = try await TestPlace().storeWithContainer()
        try await store.write(of: Sample.otherContainer) { _ in }
        let written = try await withThrowingTaskGroup(of: LogPosition?.self) { group in
            for number in 1...24 {
                group.addTask {
                    do {
                        return try await Self.append(
                            to: store, failing: number.isMultiple(of: 5))
                    } catch is Refusal {
                        return nil
                    }
                }
            }
            var written: [LogPosition] = []
            for try await position in group {
                if let position { written.append(position) }
            }
            return written
        }
        #expect(written.sorted() == (1...20).map { LogPosition($0) })
        let rows = try await store.read { db in
            try Int64.fetchOne(db, sql: "SELECT count(*) FROM logEntry")
        }
        #expect(rows == 20)
        await store.close()
    }
}
