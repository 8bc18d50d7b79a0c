import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore {
    package func listedRetries(
        of container: ContainerKey, _ filter: DeliveryListFilter, before: DeliveryListPlace?,
        _ bounds: PageBounds
    ) async throws -> ListPage<Retry, DeliveryListPlace> {
        let reason = filter.reason
        return try await exceptions(
            of: container, filter, before: before, bounds,
            ExceptionList(
                table: "retry", order: "position", all: ListStatements.retries,
                ofUser: ListStatements.retriesOfUser, ofReason: nil)
        ) { row in
            let retry = try Retry(row: row)
            let isWanted = reason.map { retry.reason.text == $0 } ?? true
            return isWanted && filter.isMet(by: retry.delivery.delivery) ? retry : nil
        }
    }

    package func listedDeadLetters(
        of container: ContainerKey, _ filter: DeliveryListFilter, before: DeliveryListPlace?,
        _ bounds: PageBounds
    ) async throws -> ListPage<DeadLetter, DeliveryListPlace> {
        let reason = filter.reason
        return try await exceptions(
            of: container, filter, before: before, bounds,
            ExceptionList(
                table: "deadLetter", order: "endedAt", all: ListStatements.letters,
                ofUser: ListStatements.lettersOfUser, ofReason: ListStatements.lettersOfReason)
        ) { row in
            let letter = try DeadLetter(row: row)
            let isWanted = reason.map { letter.reason == $0 } ?? true
            return isWanted && filter.isMet(by: letter.delivery.delivery) ? letter : nil
        }
    }

    /// The statements that find retries or dead letters.
    private struct ExceptionList: Sendable {
        let table: String
        /// The column that defines their order.
        let order: String
        let all: String
        let ofUser: String
        let ofReason: String?

        func place(_ row: Row) throws -> DeliveryListPlace {
            let stored = StoredRow(row: row, table: table)
            return DeliveryListPlace(
                order: row[order],
                delivery: try stored.require("deliveryID", DeliveryID(stored: row["deliveryID"])))
        }
    }

    private func exceptions<Value: Sendable>(
        of key: ContainerKey, _ filter: DeliveryListFilter, before: DeliveryListPlace?,
        _ bounds: PageBounds, _ list: ExceptionList,
        _ make: @escaping @Sendable (Row) throws -> Value?
    ) async throws -> ListPage<Value, DeliveryListPlace> {
        try await read { [unreadable] db in
            guard let container = try db.containerIfKnown(key) else {
                return ListPage([], next: nil)
            }
            let type = filter.recordType?.rawValue
            func typed(_ sql: String) -> String {
                type == nil ? sql : Self.withTypes(sql, of: list.table)
            }
            func value(_ row: Row) throws -> (Value?, Int) {
                if let type, row.text(of: "changeType") != type { return (nil, 0) }
                let value = try unreadable.value(of: row, in: list.table, make) ?? nil
                return (value, row.bytes(of: "body"))
            }
            if let positions = filter.positions {
                return try Self.page(
                    of: positions, by: typed(ListStatements.ofChange(list.table)), container, list,
                    before: before, bounds, in: db, value)
            }
            var sql = list.all
            var arguments: StatementArguments = [
                container.id, before?.order ?? .max, before?.delivery.stored ?? Data(),
            ]
            if let user = filter.user {
                sql = list.ofUser
                arguments += [user.rawValue]
            } else if let reason = filter.reason, let ofReason = list.ofReason {
                sql = ofReason
                arguments += [reason]
            }
            let rows = try Row.fetchCursor(db, sql: typed(sql), arguments: arguments)
            return try ListScan(bounds: bounds).page(of: rows, place: list.place, value)
        }
    }

    /// Returns a statement extended by the record type of each row's change, as far as the log
    /// still has the change.
    ///
    /// `sql` must select all columns of a table. A page may read ten thousand rows, and a separate
    /// query for each would mean as many round trips.
    private static func withTypes(_ sql: String, of table: String) -> String {
        let column = """
            (SELECT logEntry.recordType FROM logEntry
                WHERE logEntry.position = \(table).position) AS changeType
            """
        let beginning = "SELECT *"
        return "\(beginning), \(column)\(sql.dropFirst(beginning.count))"
    }

    /// Returns the deliveries of a few changes, each of which has few, in the order of the list.
    private static func page<Value: Sendable>(
        of positions: Set<LogPosition>, by sql: String, _ container: StoredContainer,
        _ list: ExceptionList, before: DeliveryListPlace?, _ bounds: PageBounds, in db: Database,
        _ value: (Row) throws -> (Value?, Int)
    ) throws -> ListPage<Value, DeliveryListPlace> {
        let find = try db.cachedStatement(sql: sql)
        var rows: [(place: DeliveryListPlace, value: Value)] = []
        for position in positions.sorted(by: >) where rows.count < ListScan.lookedAt {
            let found = try Row.fetchCursor(find, arguments: [container.id, position.stored])
            while rows.count < ListScan.lookedAt, let row = try found.next() {
                if let value = try value(row).0 { rows.append((try list.place(row), value)) }
            }
        }
        func key(_ place: DeliveryListPlace) -> (Int64, String) {
            (place.order, place.delivery.description)
        }
        let rest = rows.filter { row in before.map { key(row.place) < key($0) } ?? true }
            .sorted { key($0.place) > key($1.place) }
        let page = rest.prefix(bounds.rows)
        return ListPage(
            page.map(\.value), next: rest.count > page.count ? page.last?.place : nil)
    }

    // MARK: Receipts

    package func listedReceipts(
        _ filter: ReceiptListFilter, before: ReceiptPlace?, _ bounds: PageBounds
    ) async throws -> ListPage<DeliveryReceipt, ReceiptPlace> {
        let scan = ReceiptListScan(
            filter: filter, limit: bounds.rows, bound: settings.scannedReceipts)
        return try await read { try scan.run(before: before, in: $0) }
    }

    package func serials(
        of user: UserID, in container: ContainerKey, _ which: NamedVersions, limit: Int
    ) async throws -> [UInt64] {
        try await read { db in
            guard let owner = try db.userIfKnown(user, of: container) else { return [] }
            var arguments: StatementArguments = [owner]
            let condition: String
            let tables: [String]
            switch which {
            case .subscriptions(let id):
                tables = ["subscription", "pastSubscription"]
                // The index contains the database between the owner and the ID.
                condition = """
                    owner = ?1 AND database IN ('public', 'private', 'shared')
                        AND subscriptionID = ?2
                    """
                arguments += [id.rawValue]
            case .devices(let id):
                tables = ["device", "pastDevice"]
                condition = "owner = ?1 AND (?2 IS NULL OR deviceID = ?2)"
                arguments += [id?.rawValue]
            }
            let parts = tables.map { "SELECT serial FROM \($0) WHERE \(condition)" }
            let found = try Int64.fetchAll(
                db,
                sql: "\(parts.joined(separator: " UNION ALL ")) ORDER BY serial DESC LIMIT ?3",
                arguments: arguments + [limit])
            return found.map { UInt64(clamping: $0) }
        }
    }

    package func names(
        subscriptions: Set<UInt64>, devices: Set<UInt64>
    ) async throws -> VersionNames {
        guard !subscriptions.isEmpty || !devices.isEmpty else { return VersionNames() }
        return try await read { db in
            var names = VersionNames()
            let findSubscription = try db.cachedStatement(
                sql: """
                    SELECT subscriptionID, (SELECT name FROM user WHERE id = owner) AS ownerName
                    FROM subscription WHERE serial = ?1
                    UNION ALL
                    SELECT subscriptionID, (SELECT name FROM user WHERE id = owner)
                    FROM pastSubscription WHERE serial = ?1 LIMIT 1
                    """)
            let serials = Array(subscriptions)
            let rows = try Row.fetchFirsts(
                findSubscription,
                arguments: serials.map { serial -> StatementArguments in [serial.stored] })
            for case (let serial, let row?) in zip(serials, rows) {
                guard let id = SubscriptionID(rawValue: row[0]),
                    let owner = UserID(rawValue: row[1])
                else { continue }
                names.subscriptions[serial] = .init(id: id, owner: owner)
            }
            let findDevice = try db.cachedStatement(
                sql: """
                    SELECT deviceID FROM device WHERE serial = ?1
                    UNION ALL SELECT deviceID FROM pastDevice WHERE serial = ?1 LIMIT 1
                    """)
            let asked = Array(devices)
            let found = try Row.fetchFirsts(
                findDevice,
                arguments: asked.map { serial -> StatementArguments in [serial.stored] })
            for case (let serial, let row?) in zip(asked, found) {
                names.devices[serial] = DeviceID(rawValue: row[0] as String)
            }
            return names
        }
    }
}
