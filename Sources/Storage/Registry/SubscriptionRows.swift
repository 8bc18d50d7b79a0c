import GRDB
import RelayModel

/// Reads the rows of a portion of subscriptions; what rows have in common is made once.
struct SubscriptionRows {
    private var bodies = SubscriptionBodies()
    private var columns: Columns?
    private var container: ContainerKey?

    private struct Columns {
        let serial, body, activation, database, owner, container, environment: Int

        init(_ row: Row) throws {
            func index(_ name: String) throws -> Int {
                guard let index = Array(row.columnNames).lastIndex(of: name) else {
                    throw StorageError.damaged(
                        path: "subscription", reason: "subscription.\(name) is missing")
                }
                return index
            }
            serial = try index("serial")
            body = try index("body")
            activation = try index("activation")
            database = try index("database")
            owner = try index("ownerName")
            container = try index("containerName")
            environment = try index("environment")
        }
    }

    /// The version in a row.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if it is not what Belfry writes.
    mutating func version(_ row: Row) throws -> SubscriptionVersion {
        let columns = try self.columns ?? Columns(row)
        self.columns = columns
        let stored = StoredRow(row: row, table: "subscription")
        let database = DatabaseScope(rawValue: row[columns.database])
        let user = UserID(rawValue: row[columns.owner])
        let owner = SubscriptionOwner(
            container: try key(row, columns),
            database: try stored.require("database", database),
            user: try stored.require("ownerName", user))
        do {
            return SubscriptionVersion(
                serial: UInt64(clamping: row[columns.serial] as Int64),
                subscription: try bodies.subscription(row[columns.body], of: owner),
                activation: LogPosition(stored: row[columns.activation]))
        } catch {
            throw stored.damage("body")
        }
    }

    private mutating func key(_ row: Row, _ columns: Columns) throws -> ContainerKey {
        let name: String = row[columns.container]
        let environment: String = row[columns.environment]
        if let container, container.container.rawValue.utf8.elementsEqual(name.utf8),
            container.environment.rawValue == environment
        {
            return container
        }
        let key = try StoredRow(row: row, table: "subscription").containerKey()
        container = key
        return key
    }
}
