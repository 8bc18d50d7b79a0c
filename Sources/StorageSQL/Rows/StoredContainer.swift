import RelayModel
import Storage

/// A container with its row number.
struct StoredContainer: Sendable, Hashable {
    let id: Int64
    let key: ContainerKey
    /// The quotas that the container sets itself.
    var quotas = Quotas()
}

extension Database {
    /// Returns a container with its number.
    ///
    /// - Throws: ``StorageError/unknownContainer(_:)`` if it was never saved.
    func container(_ key: ContainerKey) throws -> StoredContainer {
        guard let container = try containerIfKnown(key) else {
            throw StorageError.unknownContainer(key)
        }
        return container
    }

    /// Returns a container with its number, or `nil` if it was never saved.
    func containerIfKnown(_ key: ContainerKey) throws -> StoredContainer? {
        let statement = try cachedStatement(
            sql: "SELECT id, quotas FROM container WHERE name = ? AND environment = ?")
        let row = try Row.fetchOne(
            statement, arguments: [key.container.rawValue, key.environment.rawValue])
        guard let row else { return nil }
        guard row[1] as String? != nil else { return StoredContainer(id: row[0], key: key) }
        let quotas = try StoredRow(row: row, table: "container").quotas()
        return StoredContainer(id: row[0], key: key, quotas: quotas)
    }

    /// Returns the numbers of containers, each looked up once, without those that were never saved.
    func numbers(of keys: some Sequence<ContainerKey>) throws -> [ContainerKey: Int64] {
        var numbers: [ContainerKey: Int64] = [:]
        for key in Set(keys) { numbers[key] = try containerIfKnown(key)?.id }
        return numbers
    }

    /// Returns the number of a user, creating the user if necessary.
    func user(_ user: UserID, of container: StoredContainer) throws -> Int64 {
        let find = try cachedStatement(
            sql: "SELECT id FROM user WHERE container = ? AND name = ?")
        let arguments: StatementArguments = [container.id, user.rawValue]
        if let id = try Int64.fetchOne(find, arguments: arguments) { return id }
        return try cachedStatement(
            sql: "INSERT INTO user (container, name) VALUES (?, ?) RETURNING id"
        ).inserted(arguments, in: "user")
    }
}

extension StoredRow {
    /// Returns the rates that the container sets itself.
    func rates() throws -> RequestRates {
        do {
            return try RequestRates(JSONReader(try json("rates")))
        } catch is JSONContractError {
            throw damage("rates")
        }
    }

    /// Returns the quotas that the container sets itself.
    func quotas() throws -> Quotas {
        do {
            return try Quotas(JSONReader(try json("quotas")))
        } catch is JSONContractError {
            throw damage("quotas")
        }
    }
}
