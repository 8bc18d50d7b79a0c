import RelayModel
import Storage

extension DeviceVersion {
    /// Reads a single row.
    init(row: Row) throws {
        var rows = DeviceRows()
        self = try rows.version(row)
    }
}

extension SubscriptionVersion {
    /// Reads a single row.
    init(row: Row) throws {
        var rows = SubscriptionRows()
        self = try rows.version(row)
    }
}

/// Reads several rows of devices, and finds the columns only once.
struct DeviceRows {
    private var columns: Columns?
    private var containers = ContainerColumns()

    private struct Columns {
        let serial, deviceID, owner, environment, token, topic, gateway: Int
        let registeredAt, activation, kindness: Int

        init(_ row: Row) throws {
            let find = ColumnFinder(row: row, table: "device")
            serial = try find.index("serial")
            deviceID = try find.index("deviceID")
            owner = try find.index("ownerName")
            environment = try find.index("gatewayEnvironment")
            token = try find.index("token")
            topic = try find.index("topic")
            gateway = try find.index("gateway")
            registeredAt = try find.index("registeredAt")
            activation = try find.index("activation")
            kindness = try find.index("kindness")
        }
    }

    /// Returns the version in a row.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if the row is not what Belfry writes.
    mutating func version(_ row: Row) throws -> DeviceVersion {
        let columns = try self.columns ?? Columns(row)
        self.columns = columns
        let stored = StoredRow(row: row, table: "device")
        var device = Device(
            id: try stored.require("deviceID", DeviceID(rawValue: row[columns.deviceID])),
            container: try containers.key(row, in: "device"),
            owner: try stored.require("ownerName", UserID(rawValue: row[columns.owner])),
            gatewayEnvironment: try stored.require(
                "gatewayEnvironment", GatewayEnvironment(rawValue: row[columns.environment])),
            token: try stored.require("token", DeviceToken(rawValue: row[columns.token])),
            topic: row[columns.topic])
        device.gateway = try stored.require(
            "gateway", GatewayKind(rawValue: row[columns.gateway]))
        if let text = row[columns.kindness] as String? {
            let json = try stored.json(text, of: "kindness")
            device.kindness = try stored.require("kindness", try? DeviceKindness(storedForm: json))
        }
        return DeviceVersion(
            serial: UInt64(clamping: row[columns.serial] as Int64), device: device,
            registeredAt: Timestamp(stored: row[columns.registeredAt]),
            activation: LogPosition(stored: row[columns.activation]))
    }
}

/// Reads several rows of subscriptions, and creates what rows have in common only once.
struct SubscriptionRows {
    private var bodies = SubscriptionBodies()
    private var columns: Columns?
    private var containers = ContainerColumns()

    private struct Columns {
        let serial, body, activation, database, owner: Int

        init(_ row: Row) throws {
            let find = ColumnFinder(row: row, table: "subscription")
            serial = try find.index("serial")
            body = try find.index("body")
            activation = try find.index("activation")
            database = try find.index("database")
            owner = try find.index("ownerName")
        }
    }

    /// Returns the version in a row.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if the row is not what Belfry writes.
    mutating func version(_ row: Row) throws -> SubscriptionVersion {
        let columns = try self.columns ?? Columns(row)
        self.columns = columns
        let stored = StoredRow(row: row, table: "subscription")
        let database = DatabaseScope(rawValue: row[columns.database])
        let user = UserID(rawValue: row[columns.owner])
        let owner = SubscriptionOwner(
            container: try containers.key(row, in: "subscription"),
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
}

/// Finds the columns of a table's rows by name, which takes longer than reading them.
private struct ColumnFinder {
    let names: ColumnNames
    let table: String

    init(row: Row, table: String) {
        names = row.columns.names
        self.table = table
    }

    /// Returns the index of the last column with this name.
    ///
    /// Joined columns come after a table's own.
    func index(_ name: String) throws -> Int {
        guard let index = names.lastIndex(of: name) else {
            throw StorageError.damaged(path: table, reason: "\(table).\(name) is missing")
        }
        return index
    }
}

/// Reads the containers of consecutive rows, which are mostly the same.
private struct ContainerColumns {
    private var columns: (name: Int, environment: Int)?
    private var last: ContainerKey?

    mutating func key(_ row: Row, in table: String) throws -> ContainerKey {
        let columns = try self.columns ?? Self.columns(of: row, in: table)
        self.columns = columns
        let name: String = row[columns.name]
        let environment: String = row[columns.environment]
        if let last, last.container.rawValue.utf8.elementsEqual(name.utf8),
            last.environment.rawValue == environment
        {
            return last
        }
        let key = try StoredRow(row: row, table: table).containerKey()
        last = key
        return key
    }

    private static func columns(
        of row: Row, in table: String
    ) throws -> (name: Int, environment: Int) {
        let find = ColumnFinder(row: row, table: table)
        return (try find.index("containerName"), try find.index("environment"))
    }
}
