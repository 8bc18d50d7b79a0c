import GRDB
import RelayTestKit
import Storage
import Testing

@testable import StorageSQLite

/// What every call asks for is looked up, however much is stored.
@Suite struct QueryPlanTests {
    private static let zone =
        "container=? AND database=? AND owner=? AND zoneOwner=? AND zoneName=?"

    @Test func `the rivals of a device are found by index`() async throws {
        let steps = try await plan(of: DeviceStep.rivalsStatement, arguments: [1, "a", "b", "c"])
        let searches = steps.filter { $0.contains(" device ") }
        #expect(
            searches == [
                "SEARCH device USING INTEGER PRIMARY KEY (rowid=?)",
                "SEARCH device USING INDEX deviceActiveID "
                    + "(container=? AND deviceID=? AND owner=?)",
                "SEARCH device USING INDEX deviceActiveToken (container=? AND token=?)",
            ])
    }

    /// A search by fewer columns than are known reads what is another's, or all of a zone.
    @Test(arguments: [
        (
            ShadowRows.namedStatement, "shadowRecord",
            "SEARCH shadowRecord USING INDEX shadowRecordName (\(zone) AND recordName=?)"
        ),
        (
            ShadowRows.deletedWithStatement, "shadowRecord",
            "SEARCH shadowRecord USING INDEX shadowRecordDeletedWith (\(zone) AND deletedWith=?)"
        ),
        (
            CourierStep.addressStatement, "device",
            "SEARCH device USING INDEX deviceActiveID (container=? AND deviceID=? AND owner=?)"
        ),
        (
            DeviceStep.forgottenStatement, "device",
            "SEARCH device USING INDEX deviceActiveID (container=? AND deviceID=? AND owner=?)"
        ),
        (
            DeviceStep.surplusStatement, "device",
            "SEARCH device USING INDEX deviceOwner (owner=?)"
        ),
        (
            InboxStep.sharingStatement, "notification",
            "SEARCH notification USING INDEX notificationID (owner=? AND notificationID=?)"
        ),
    ])
    func `what grows is looked up by all that is known of it`(
        statement: String, table: String, search: String
    ) async throws {
        let steps = try await plan(of: statement)
        #expect(steps.filter { $0.contains(" \(table) ") } == [search])
    }

    private func plan(
        of statement: String, arguments: StatementArguments? = nil
    ) async throws -> [String] {
        let home = try TemporaryStore()
        let store = try home.open()
        await store.close()
        let queue = try DatabaseQueue(path: home.path)
        return try await queue.read { db in
            let number = statement.count { $0 == "?" }
            let values = arguments ?? StatementArguments([Int](repeating: 1, count: number))
            let sql = "EXPLAIN QUERY PLAN \(statement)"
            return try Row.fetchAll(db, sql: sql, arguments: values)
                .map { $0["detail"] as String }
        }
    }
}
