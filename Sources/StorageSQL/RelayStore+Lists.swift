package import RelayModel
package import Storage

extension RelayStore: ListRegistry {
    package func listedChanges(
        of container: ContainerKey, _ filter: ChangeListFilter, before: LogPosition?,
        _ bounds: PageBounds
    ) async throws -> ListPage<PastChange, LogPosition> {
        if let name = filter.recordName {
            let positions = try await positions(
                ofRecord: name, filter.recordType, in: container, limit: Self.positionsOfRecord)
            return try await changes(
                at: positions.filter { $0 < before ?? LogPosition(.max) }, of: container, filter,
                bounds)
        }
        var before = before
        while true {
            let found = try await listed(of: container, filter, before: before, bounds)
            guard found.goesOn else { return found.page }
            try Task.checkCancellation()
            before = found.page.next
        }
    }

    /// A page of changes.
    ///
    /// If `goesOn`, the page is empty and the search must continue with another turn.
    typealias ListedChanges = (page: ListPage<PastChange, LogPosition>, goesOn: Bool)

    private func listed(
        of container: ContainerKey, _ filter: ChangeListFilter, before: LogPosition?,
        _ bounds: PageBounds
    ) async throws -> ListedChanges {
        try await line.turn(of: container) {
            try await read { [horizon] db -> ListedChanges in
                guard let known = try db.containerIfKnown(container) else {
                    return (ListPage([], next: nil), false)
                }
                func page(
                    _ sql: String, _ arguments: StatementArguments
                ) throws -> ListPage<PastChange, LogPosition> {
                    let rows = try Row.fetchCursor(db, sql: sql, arguments: arguments)
                    return try ListScan(bounds: bounds).page(
                        of: rows, place: { LogPosition(stored: $0["position"]) }
                    ) { row in
                        let change = try PastChange(row: row, container: container)
                        return (filter.isMet(by: change) ? change : nil, row.bytes(of: "body"))
                    }
                }
                let arguments: StatementArguments = [known.id, before?.stored ?? .max]
                if let type = filter.recordType {
                    let sql = ListStatements.changesOfType
                    return (try page(sql, arguments + [type.rawValue]), false)
                }
                guard db.dialect == .postgresql else {
                    return (try page(ListStatements.changes, arguments), false)
                }
                let last = horizon.head.next
                return try Self.changesInSpans(before: min(before ?? last, last), in: db) {
                    end, least in
                    try page(
                        ListStatements.changesOfSpan, [known.id, end.stored, least.stored])
                }
            }
        }
    }

    /// Returns the changes of the first non-empty span of the log, going backwards.
    ///
    /// The search is split into spans because a server cancels a statement that passes millions of
    /// entries of other containers.
    ///
    /// After some spans, the search must continue in another turn, because scanning all of a long
    /// log would occupy a reader for minutes.
    static func changesInSpans(
        before end: LogPosition, in db: Database,
        _ page: (
            _ end: LogPosition, _ least: LogPosition
        ) throws -> ListPage<PastChange, LogPosition>
    ) throws -> ListedChanges {
        let earlier = try db.cachedStatement(
            sql: "SELECT 1 FROM logEntry WHERE position < ? ORDER BY position DESC LIMIT 1")
        var end = end
        var passed = 0
        while true {
            let least = LogPosition(max(1, end.rawValue - min(end.rawValue, span)))
            var found = try page(end, least)
            if found.next != nil { return (found, false) }
            guard try Int.fetchOne(earlier, arguments: [least.stored]) != nil else {
                return (found, false)
            }
            found.next = least
            passed += 1
            if !found.elements.isEmpty { return (found, false) }
            if passed == spansOfTurn { return (found, true) }
            end = least
        }
    }

    /// The maximum number of entries that one statement passes: about a quarter of a second.
    private static let span: UInt64 = 200_000
    /// The number of spans in one turn: about a second.
    private static let spansOfTurn = 4

    /// The maximum number of changes listed for one record.
    ///
    /// Older ones are not listed.
    private static let positionsOfRecord = 10_000

    private func changes(
        at positions: [LogPosition], of container: ContainerKey, _ filter: ChangeListFilter,
        _ bounds: PageBounds
    ) async throws -> ListPage<PastChange, LogPosition> {
        var page = ListPage<PastChange, LogPosition>([], next: nil)
        for position in positions {
            guard page.elements.count < bounds.rows else {
                page.next = page.elements.last?.position
                break
            }
            let change = try await pastChange(at: position, of: container)
            if let change, filter.isMet(by: change) { page.elements.append(change) }
        }
        return page
    }

    package func positions(
        ofRecord name: RecordName, _ type: RecordType?, in container: ContainerKey, limit: Int
    ) async throws -> [LogPosition] {
        try await read { db in
            guard let known = try db.containerIfKnown(container) else { return [] }
            let find = try db.cachedStatement(sql: ListStatements.positionsOfRecord)
            var found: [Int64] = []
            for type in try type.map({ [$0.rawValue] }) ?? Self.types(of: known, in: db) {
                found += try Int64.fetchAll(
                    find, arguments: [known.id, type, name.rawValue, limit])
            }
            return found.sorted(by: >).prefix(limit).map { LogPosition(stored: $0) }
        }
    }

    /// Returns the record types in a container's log, with one index step for each.
    private static func types(of container: StoredContainer, in db: Database) throws -> [String] {
        let next = try db.cachedStatement(sql: ListStatements.nextType)
        var types: [String] = []
        while types.count < mostTypes,
            let type = try String.fetchOne(next, arguments: [container.id, types.last ?? ""])
        {
            types.append(type)
        }
        return types
    }

    /// The maximum number of record types that are searched for a record whose type is not given.
    private static let mostTypes = 1000

    package func listedParked(
        of container: ContainerKey, source: SourceName?, before: UInt64?, _ bounds: PageBounds
    ) async throws -> ListPage<ParkedChange, UInt64> {
        try await read { db in
            guard let known = try db.containerIfKnown(container) else {
                return ListPage([], next: nil)
            }
            var sql = ListStatements.parked
            var arguments: StatementArguments = [known.id, before?.stored ?? .max]
            if let source {
                sql = ListStatements.parkedOfSource
                arguments += [source.rawValue]
            }
            let rows = try Row.fetchCursor(db, sql: sql, arguments: arguments)
            return try ListScan(bounds: bounds).page(
                of: rows, place: { StoredRow(row: $0, table: "parkedChange").number("number") }
            ) { row in
                (try ParkedChange(row: row, container: container), row.bytes(of: "body", "headers"))
            }
        }
    }

    // MARK: Versions

    package func listedSubscriptions(
        of container: ContainerKey, _ filter: SubscriptionListFilter, before: UInt64?,
        _ bounds: PageBounds
    ) async throws -> ListPage<SubscriptionVersion, UInt64> {
        try await versions(
            of: container, user: filter.user, before: before, bounds, table: "subscription",
            sql: { dialect in
                if filter.user != nil { return ListStatements.subscriptionsOfUser }
                return filter.recordType != nil
                    ? ListStatements.subscriptionsOfType
                    : ListStatements.subscriptions(in: dialect)
            },
            further: filter.recordType?.rawValue, size: ["body"]
        ) { row in
            let version = try SubscriptionVersion(row: row)
            let isWanted = filter.recordType.map { $0 == version.subscription.recordType } ?? true
            return isWanted ? version : nil
        }
    }

    package func listedDevices(
        of container: ContainerKey, _ filter: DeviceListFilter, before: UInt64?,
        _ bounds: PageBounds
    ) async throws -> ListPage<DeviceVersion, UInt64> {
        try await versions(
            of: container, user: filter.user, before: before, bounds, table: "device",
            sql: { dialect in
                if filter.user != nil { return ListStatements.devicesOfUser }
                return filter.device != nil
                    ? ListStatements.devicesOfID : ListStatements.devices(in: dialect)
            },
            further: filter.device?.rawValue, size: ["token", "deviceID", "topic"]
        ) { row in
            let version = try DeviceVersion(row: row)
            return filter.device.map { $0 == version.device.id } ?? true ? version : nil
        }
    }

    /// Reads versions by descending serial.
    ///
    /// The third argument of the statement is the user's number if a user is given, or else
    /// `further`.
    private func versions<Version: Sendable>(
        of key: ContainerKey, user: UserID?, before: UInt64?, _ bounds: PageBounds, table: String,
        sql: @escaping @Sendable (Dialect) -> String, further: String?, size: [String],
        _ make: @escaping @Sendable (Row) throws -> Version?
    ) async throws -> ListPage<Version, UInt64> {
        try await read { [unreadable] db in
            guard let known = try db.containerIfKnown(key) else { return ListPage([], next: nil) }
            var arguments: StatementArguments = [known.id, before?.stored ?? .max]
            if let user {
                guard let number = try db.userIfKnown(user, of: key) else {
                    return ListPage([], next: nil)
                }
                arguments += [number]
            } else if let further {
                arguments += [further]
            }
            let rows = try Row.fetchCursor(db, sql: sql(db.dialect), arguments: arguments)
            return try ListScan(bounds: bounds).page(
                of: rows, place: { StoredRow(row: $0, table: table).number("serial") }
            ) { row in
                let version = try unreadable.value(of: row, in: table, make) ?? nil
                return (version, size.reduce(0) { $0 + row.bytes(of: $1) })
            }
        }
    }

    package func listedDisabled(
        of container: ContainerKey, _ filter: SubscriptionListFilter, before: UInt64?,
        _ bounds: PageBounds
    ) async throws -> ListPage<DisabledSubscription, UInt64> {
        try await read { [unreadable] db in
            let rows = try Row.fetchCursor(
                db, sql: "\(Self.disabledOfContainer) AND serial < ?1 ORDER BY serial DESC",
                arguments: [
                    before?.stored ?? .max, container.container.rawValue,
                    container.environment.rawValue, filter.user?.rawValue,
                ])
            return try ListScan(bounds: bounds).page(
                of: rows, place: { StoredRow(row: $0, table: "subscription").number("serial") }
            ) { row in
                let disabled = try unreadable.value(of: row, in: "subscription") {
                    try DisabledSubscription(row: $0)
                }
                let type = disabled?.version.subscription.recordType
                let isWanted = filter.recordType.map { $0 == type } ?? true
                return (isWanted ? disabled : nil, row.bytes(of: "body", "reason"))
            }
        }
    }
}
