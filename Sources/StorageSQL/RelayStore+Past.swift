import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore {
    package func pastSpan() async throws -> PastSpan {
        try await read { db in
            let row = try Row.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT shardHead.position,
                            (SELECT min(position) FROM logEntry), progress.position, pastFrom,
                            \(db.dialect.lastNumber(of: "id", in: "receiptBlock")),
                            (SELECT min(id) FROM receiptBlock)
                        FROM shardHead JOIN progress ON progress.shard = shardHead.shard
                        """))
            guard let row else {
                throw StorageError.damaged(path: "shardHead", reason: "it is empty")
            }
            let head: Int64 = row[0]
            let firstBlock = row[5] as Int64? ?? .max
            var receiptsFrom: Int64 = 1
            if (row[4] as Int64? ?? 0) > 0, firstBlock > 1 {
                // Earlier changes may have had receipts in the deleted blocks.
                receiptsFrom =
                    try Int64.fetchOne(
                        db.cachedStatement(
                            sql: "SELECT lastPosition + 1 FROM receiptBlock WHERE id = ?"),
                        arguments: [firstBlock]) ?? head + 1
            }
            return PastSpan(
                first: LogPosition(stored: row[1] as Int64? ?? head + 1),
                head: LogPosition(stored: head), settled: LogPosition(stored: row[2]),
                endedFrom: LogPosition(stored: row[3]),
                receiptsFrom: LogPosition(stored: receiptsFrom))
        }
    }

    // MARK: Changes

    package func pastChange(
        at position: LogPosition, of container: ContainerKey
    ) async throws -> PastChange? {
        try await read { db in
            guard let known = try db.containerIfKnown(container) else { return nil }
            let row = try Row.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT position, appendedAt, source, isStale, body,
                            (SELECT reason FROM quarantine
                                WHERE quarantine.position = logEntry.position) AS setAside
                        FROM logEntry WHERE position = ? AND container = ? AND kind = 1
                        """), arguments: [position.stored, known.id])
            return try row.map { try PastChange(row: $0, container: container) }
        }
    }

    package func appendedChanges(
        ofDelivery id: String, from source: SourceName, in container: ContainerKey,
        at now: Timestamp, limit: Int
    ) async throws -> [RememberedChange] {
        // In a delivery with several changes, each is known by its place: "id#2", "id#2/1" or
        // "id/1".
        let ranges = [("", "\0"), ("#", "$"), ("/", "0")].map { from, to in
            (Data((id + from).utf8), Data((id + to).utf8))
        }
        return try await read { db in
            guard let known = try db.containerIfKnown(container) else { return [] }
            let statement = try db.cachedStatement(
                sql: """
                    SELECT key, position, rememberedUntil FROM dedupe
                    WHERE container = ? AND source = ? AND kind = ? AND key >= ? AND key < ?
                        AND rememberedUntil > ?
                    ORDER BY key LIMIT ?
                    """)
            var found: [LogPosition: RememberedChange] = [:]
            for (from, to) in ranges {
                let rows = try Row.fetchAll(
                    statement,
                    arguments: [
                        known.id, source.rawValue, DedupeKey.Kind.delivery.stored, from, to,
                        now.stored, max(0, limit),
                    ])
                for row in rows where DedupeKey.names(row["key"], changeOf: id) {
                    let position = LogPosition(stored: row["position"])
                    found[position] = RememberedChange(
                        position: position, until: Timestamp(stored: row["rememberedUntil"]))
                }
            }
            return Array(found.values.sorted { $0.position < $1.position }.prefix(max(0, limit)))
        }
    }

    package func pastChanges(
        _ search: PastSearch, turn: @escaping TurnStart
    ) async throws -> PastChangePage {
        let needles = try search.needles
        let least = search.leastOfTurn
        return try await line.turn(of: search.container) {
            try await read { db in
                let isOver = turn()
                var page = PastChangePage(changes: [], before: LogPosition(stored: least))
                guard let known = try db.containerIfKnown(search.container) else { return page }
                let rows = try Row.fetchCursor(
                    db.cachedStatement(
                        sql: """
                            SELECT position, appendedAt, source, isStale,
                                CASE WHEN \(Self.isMeant(needles)) THEN body END AS body,
                                (SELECT reason FROM quarantine
                                    WHERE quarantine.position = logEntry.position) AS setAside
                            FROM logEntry WHERE position < ?1 AND position >= ?2
                            ORDER BY position DESC
                            """),
                    arguments: [search.before.stored, least, known.id]
                        + StatementArguments(needles))
                while let row = try rows.next() {
                    let bytes = row.bytes(of: "body")
                    if bytes > 0 {
                        let change = try PastChange(row: row, container: search.container)
                        if search.isMet(by: change) {
                            page.changes.append(change)
                            page.sizes.append(bytes)
                        }
                    }
                    if page.changes.count >= search.limit || isOver() {
                        page.before = LogPosition(stored: row["position"])
                        break
                    }
                }
                return page
            }
        }
    }

    /// Returns the condition for the entries whose texts a search reads.
    ///
    /// The condition selects the text and not the row. Every entry is a row of the result, so that
    /// a turn can end at any entry. A statement that skipped other entries might run for seconds
    /// before its first row.
    private static func isMeant(_ needles: [String]) -> String {
        let conditions = needles.indices.map { " AND instr(body, ?\($0 + 4)) > 0" }
        return "container = ?3 AND kind = 1" + conditions.joined()
    }

    package func loggedChanges(
        _ search: PastSearch, turn: @escaping TurnStart
    ) async throws -> LoggedChangePage {
        let needles = try search.needles
        let least = search.leastOfTurn
        return try await line.turn(of: search.container) {
            try await read { db in
                let isOver = turn()
                var page = LoggedChangePage(changes: [], before: LogPosition(stored: least))
                guard let known = try db.containerIfKnown(search.container) else { return page }
                // Whether a text mentions readers or an origin is found without parsing it. Because
                // of the `LIMIT`, even without a limit, SQLite evaluates the needles once and not
                // for each column.
                let rows = try Row.fetchCursor(
                    db.cachedStatement(
                        sql: """
                            SELECT position, appendedAt, source, body,
                                coalesce(instr(body, '"readers') > 0, FALSE),
                                coalesce(
                                    instr(body, '"device":') > 0 OR instr(body, '"user":') > 0,
                                    FALSE)
                            FROM (
                                SELECT position, appendedAt, source,
                                    CASE WHEN \(Self.isMeant(needles)) AND isStale = 0
                                        AND NOT EXISTS (
                                            SELECT 1 FROM quarantine
                                            WHERE quarantine.position = logEntry.position)
                                        THEN body END AS body
                                FROM logEntry WHERE position < ?1 AND position >= ?2
                                ORDER BY position DESC LIMIT -1
                            ) AS entry
                            """),
                    arguments: [search.before.stored, least, known.id]
                        + StatementArguments(needles))
                var room = Limits.maximumPageBytes
                while let row = try rows.next() {
                    let bytes = row.bytes(of: "body")
                    if bytes > 0 {
                        page.changes.append(try LoggedPastChange(row: row))
                        room -= bytes
                    }
                    if page.changes.count >= search.limit || room <= 0 || isOver() {
                        page.before = LogPosition(stored: row["position"])
                        break
                    }
                }
                return page
            }
        }
    }

    package func moments(
        of positions: [LogPosition]
    ) async throws -> [LogPosition: Timestamp] {
        guard !positions.isEmpty else { return [:] }
        return try await read { db in
            let find = try db.cachedStatement(
                sql: "SELECT appendedAt FROM logEntry WHERE position = ?")
            let found = try Row.fetchFirsts(
                find,
                arguments: positions.map { position -> StatementArguments in [position.stored] })
            var moments: [LogPosition: Timestamp] = [:]
            for case (let position, let row?) in zip(positions, found) {
                moments[position] = Timestamp(stored: row[0] as Int64)
            }
            return moments
        }
    }

    package func lastChange(
        of record: RecordID, _ type: RecordType, in owner: SubscriptionOwner
    ) async throws -> LogPosition? {
        try await read { db in
            guard let known = try db.containerIfKnown(owner.container) else { return nil }
            return try Int64.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT position FROM shadowRecord
                        WHERE container = ? AND database = ? AND owner = ? AND zoneOwner = ?
                            AND zoneName = ? AND recordType = ? AND recordName = ?
                        """),
                arguments: [
                    known.id, owner.database.rawValue,
                    owner.database == .public ? "" : owner.user.rawValue,
                    record.zoneID.ownerRecordName?.rawValue ?? "", record.zoneID.zoneName,
                    type.rawValue, record.recordName.rawValue,
                ]
            ).map { LogPosition(stored: $0) }
        }
    }

    // MARK: What became of deliveries

    package func courierFate(of id: DeliveryID) async throws -> CourierFate? {
        try await read { db in
            let row = try Row.fetchOne(
                db.cachedStatement(
                    sql: "SELECT takenAt, expiresAt FROM courierNotification WHERE deliveryID = ?"),
                arguments: [id.stored])
            guard let row else { return nil }
            let expiresAt = Timestamp(stored: row[1])
            guard let taken = row[0] as Int64? else { return .waits(until: expiresAt) }
            let takenAt = Timestamp(stored: taken)
            return takenAt >= expiresAt ? .expired(expiresAt) : .taken(takenAt)
        }
    }

    package func inboxFate(
        of position: LogPosition, _ subscriptionSerial: UInt64, _ owner: InboxOwner
    ) async throws -> InboxFate? {
        try await read { db in
            guard let owner = try InboxStep.owner(owner, in: db) else { return nil }
            let row = try Row.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT createdAt, readAt FROM notification
                        WHERE owner = ? AND position = ? AND subscriptionSerial = ?
                        """), arguments: [owner, position.stored, subscriptionSerial.stored])
            return row.map {
                InboxFate(
                    keptAt: Timestamp(stored: $0[0]),
                    readAt: ($0[1] as Int64?).map { Timestamp(stored: $0) })
            }
        }
    }

    package func isInRanges(_ position: LogPosition) async throws -> Bool {
        try await read { db in
            try Bool.fetchOne(
                db.cachedStatement(
                    sql: "SELECT EXISTS (SELECT 1 FROM rangeTask WHERE position = ?)"),
                arguments: [position.stored]) ?? false
        }
    }
}

private extension PastSearch {
    /// The lowest position that one turn looks at.
    ///
    /// The log has no gaps, so this limits the rows of a turn, even if a database reads all of them
    /// before it returns the first.
    var leastOfTurn: Int64 {
        max(1, before.stored - Int64(min(entries, Self.entriesOfTurn)))
    }

    private static let entriesOfTurn = 512

    /// The texts that every matching change contains.
    var needles: [String] {
        get throws {
            try [
                recordType.map { "\"type\":\(try JSONValue.string($0.rawValue).storedText())" },
                recordName.map { "\"name\":\(try JSONValue.string($0.rawValue).storedText())" },
            ].compactMap(\.self)
        }
    }

    /// Returns whether a change really matches.
    ///
    /// A text within a record may contain the needles by chance.
    func isMet(by past: PastChange) -> Bool {
        guard let change = past.change else { return false }
        return recordType.map { $0 == change.recordType } ?? true
            && recordName.map { $0 == change.recordID.recordName } ?? true
    }
}

extension PastChange {
    init(row: Row, container: ContainerKey) throws {
        let stored = StoredRow(row: row, table: "logEntry")
        let text = row.text(of: "body")
        self.init(
            position: LogPosition(stored: row["position"]), container: container,
            appendedAt: stored.moment("appendedAt"), source: try stored.identifier("source"),
            isStale: row["isStale"],
            change: text.flatMap { try? LoggedChange.stored($0).change() },
            setAside: row["setAside"])
    }
}

private extension LoggedPastChange {
    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "logEntry")
        self.init(
            position: LogPosition(stored: row[0]), appendedAt: stored.moment("appendedAt"),
            source: try stored.identifier("source"), change: .stored(row[3]),
            mayNameReaders: row[4], mayNameOrigin: row[5])
    }
}

private extension DedupeKey {
    /// Returns whether a stored key belongs to a delivery as a whole, or to one of its changes by
    /// place.
    static func names(_ key: Data, changeOf delivery: String) -> Bool {
        let text = String(decoding: key, as: UTF8.self)
        guard text.hasPrefix(delivery) else { return false }
        return text.dropFirst(delivery.count).wholeMatch(of: /(?:#[0-9]+)?(?:\/[0-9]+)?/) != nil
    }
}
