import FoundationEssentials
import RelayModel
import Storage

extension FiringBlock {
    /// Writes the block as a row.
    func insert(in db: Database) throws {
        let statement = try db.cachedStatement(
            sql: "INSERT INTO firingBlock (count, body) VALUES (?, ?)")
        try statement.execute(arguments: [count, Data(body)])
    }

    /// Adds the content of a row to `sums`.
    static func add(
        _ row: Row, to sums: inout [UInt64: SubscriptionHealth],
        where isWanted: (UInt64) -> Bool = { _ in true }
    ) throws {
        guard add(row["body"] as Data, to: &sums, where: isWanted) else {
            throw StorageError.damaged(
                path: "firingBlock", reason: "block \(row["id"] as Int64) cannot be read")
        }
    }
}
