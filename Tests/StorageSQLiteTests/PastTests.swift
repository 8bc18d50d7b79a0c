import GRDB
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Past versions are found by key, however many there are, and are pruned together with the log.
@Suite struct PastTests {
    /// Returns the steps of a query plan that look at a table of versions or receipts.
    private static func plan(
        _ sql: String, _ arguments: GRDB.StatementArguments
    ) async throws -> [String] {
        let home = try TemporaryStore()
        let store = try home.open()
        await store.close()
        let queue = try DatabaseQueue(path: home.path)
        return try await queue.read { db in
            try GRDB.Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(sql)", arguments: arguments)
                .map { $0["detail"] as String }
        }
    }

    @Test func `active, ended and moved versions are found by an index`() async throws {
        let byName = try await Self.plan(
            PastVersions.subscriptionsByName, [1, "public", "q", 10])
        #expect(!byName.contains { $0.hasPrefix("SCAN subscription") }, "\(byName)")
        #expect(!byName.contains { $0.hasPrefix("SCAN pastSubscription") }, "\(byName)")
        #expect(byName.contains { $0.contains("subscriptionActiveID (owner=? AND database=? AND") })
        #expect(byName.contains { $0.contains("subscriptionPastID (owner=? AND database=? AND") })
        #expect(byName.contains { $0.contains("pastSubscriptionID (owner=? AND database=? AND") })
        let judging = try await Self.plan(
            PastVersions.subscriptionsJudging, [1, "public", 5, 10])
        #expect(!judging.contains { $0.contains("SCAN subscription") }, "\(judging)")
        #expect(!judging.contains { $0.contains("SCAN pastSubscription") }, "\(judging)")
        let serial = try await Self.plan(PastVersions.subscriptionBySerial, [1, 5])
        #expect(!serial.contains { $0.contains("SCAN subscription") }, "\(serial)")
        let devices = try await Self.plan("\(PastVersions.devicesOfOwner) WHERE ended < 3", [1])
        #expect(!devices.contains { $0 == "SCAN device" || $0 == "SCAN pastDevice" }, "\(devices)")
        let one = try await Self.plan("\(PastVersions.devices) WHERE serial = ?", [1])
        #expect(!one.contains { $0 == "SCAN device" || $0 == "SCAN pastDevice" }, "\(one)")
    }

    @Test func `past versions are read together up to the size of two pages`() async throws {
        let store = try TemporaryStore().open()
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: ["t"]), at: Fixtures.moment)
        let owner = SubscriptionOwner(
            container: Fixtures.container, database: .public, user: Fixtures.identifier("alice"))
        let text = String(repeating: "x", count: 500_000)
        for number in 10..<40 {
            let one = Fixtures.subscription("one", where: "title == '\(number)\(text)'")
            let edit = number == 10 ? SubscriptionEdit.create(one) : .update(one)
            _ = try await store.edit(
                [edit], of: owner, atomicity: .independent, at: Fixtures.moment)
        }
        let serials = try await store.pastSubscriptions(
            Fixtures.identifier("one"), of: owner, limit: 200
        ).map(\.version.serial)
        #expect((2..<20).contains(serials.count))
        #expect(serials == serials.sorted(by: >))
        await store.close()
    }

    @Test func `the receipts of one change are found by an index`() async throws {
        let plan = try await Self.plan(ReceiptScan.blocksOfPosition(in: .sqlite), [1, 4])
        #expect(plan.contains { $0.contains("COVERING INDEX receiptBlockPositions") }, "\(plan)")
        #expect(!plan.contains("SCAN receiptBlock"), "\(plan)")
    }
}
