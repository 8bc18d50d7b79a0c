import GRDB
import RelayTestKit
import Storage
import Testing

@testable import StorageSQLite

/// What every registration asks for is looked up, however many devices there are.
@Suite struct QueryPlanTests {
    @Test func `the rivals of a device are found by index`() async throws {
        let home = try TemporaryStore()
        let store = try home.open()
        await store.close()
        let queue = try DatabaseQueue(path: home.path)
        let steps = try await queue.read { db in
            let sql = "EXPLAIN QUERY PLAN \(DeviceStep.rivalsStatement)"
            return try Row.fetchAll(db, sql: sql, arguments: [1, "a", "b", "c"])
                .map { $0["detail"] as String }
        }
        let searches = steps.filter { $0.contains(" device ") }
        #expect(
            searches == [
                "SEARCH device USING INTEGER PRIMARY KEY (rowid=?)",
                "SEARCH device USING INDEX deviceActiveID "
                    + "(container=? AND deviceID=? AND owner=?)",
                "SEARCH device USING INDEX deviceActiveToken (container=? AND token=?)",
            ])
    }
}
