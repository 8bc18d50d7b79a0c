import FoundationEssentials
import RelayModel
import Storage

extension StoreReport {
    /// The number of unreadable rows of a table that are listed one by one.
    private static let namedRows = 20

    /// Returns the rows that do not hold what Belfry writes, one sentence each.
    ///
    /// This reads every subscription, device, retry, open digest, dead letter and range.
    static func unreadableRows(in db: Database) throws -> [String] {
        var problems = try unreadable(
            "subscription", VersionTable.subscription.select(), in: db
        ) { _ = try SubscriptionVersion(row: $0) }
        problems += try unreadable("device", VersionTable.device.select(), in: db) {
            _ = try DeviceVersion(row: $0)
        }
        problems += try unreadable("retry", "SELECT * FROM retry", in: db) {
            _ = try Retry(row: $0)
        }
        problems += try unreadable(
            "digest", "SELECT * FROM digest WHERE closedAt IS NULL", in: db
        ) { _ = try Digest(row: $0) }
        problems += try unreadable("deadLetter", "SELECT * FROM deadLetter", in: db) {
            _ = try DeadLetter(row: $0)
        }
        problems += try unreadable("rangeTask", "SELECT * FROM rangeTask", in: db) {
            let serials = SerialList.decode($0["serials"] as Data)
            _ = try StoredRow(row: $0, table: "rangeTask").require("serials", serials)
        }
        return problems
    }

    /// Returns the number of serials in ranges without a subscription row.
    ///
    /// What they owe is lost.
    static func goneMembers(in db: Database) throws -> Int {
        let find = try db.cachedStatement(sql: "SELECT 1 FROM subscription WHERE serial = ?")
        let rows = try Row.fetchCursor(db, sql: "SELECT serials FROM rangeTask ORDER BY id")
        var count = 0
        while let row = try rows.next() {
            for serial in SerialList.decode(row[0] as Data) ?? []
            where try Int.fetchOne(find, arguments: [serial.stored]) == nil {
                count += 1
            }
        }
        return count
    }

    private static func unreadable(
        _ table: String, _ sql: String, in db: Database, _ read: (Row) throws -> Void
    ) throws -> [String] {
        let rows = try Row.fetchCursor(db, sql: sql)
        var problems: [String] = []
        var count = 0
        while let row = try rows.next() {
            do {
                try read(row)
            } catch StorageError.damaged(_, let reason) {
                count += 1
                guard count <= namedRows else { continue }
                problems.append("\(table) \(UnreadableRow.key(of: row)): \(reason)")
            }
        }
        if count > namedRows { problems.append("\(count - namedRows) more × \(table) unreadable") }
        return problems
    }
}
