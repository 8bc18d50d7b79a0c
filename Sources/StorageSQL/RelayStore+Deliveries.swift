import Crypto
import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore {
    package func receipts(
        matching filter: ReceiptFilter, limit: Int
    ) async throws -> [DeliveryReceipt] {
        let scan = ReceiptScan(filter: filter, limit: limit, bound: settings.scannedReceipts)
        return try await read { try scan.run(in: $0) }
    }

    package func retries(of container: ContainerKey, limit: Int) async throws -> [Retry] {
        try await exceptions(
            of: container, in: "retry",
            sql: "SELECT * FROM retry WHERE container = ? ORDER BY dueAt LIMIT ?",
            arguments: [max(0, limit)]
        ) { try Retry(row: $0) }
    }

    package func deadLetters(
        of container: ContainerKey, reason: String?, limit: Int
    ) async throws -> [DeadLetter] {
        try await exceptions(
            of: container, in: "deadLetter",
            sql: """
                SELECT * FROM deadLetter WHERE container = ?1 AND (?2 IS NULL OR reason = ?2)
                ORDER BY endedAt DESC, deliveryID LIMIT ?3
                """, arguments: [reason, max(0, limit)]
        ) { try DeadLetter(row: $0) }
    }

    package func dropDeadLetters(
        _ ids: [DeliveryID]?, of container: ContainerKey, reason: String?
    ) async throws -> Int {
        try await letters(ids, of: container, reason) { db, container, letters in
            try db.addToAccount(of: container.id, dropped: letters.count)
        }
    }

    package func park(_ changes: [ParkedChange]) async throws -> [UInt64] {
        guard let key = changes.first?.container else { return [] }
        let texts = try changes.map { change in
            let headers = change.headers.sorted { $0.key < $1.key }
            return try JSONValue.object(
                JSONObject(headers.map { ($0.key, .string($0.value)) })
            ).storedText()
        }
        let digests = changes.map { Self.digest(of: $0) }
        let bytes = changes.reduce(0) { $0 + $1.body.count }
        return try await admitted(key) { store in
            try await store.write(
                .intake, of: key, changes: changes.count, bytes: bytes
            ) { commit in
                let container = try commit.container(key)
                let db = commit.db
                return try changes.indices.map { index in
                    try Self.park(
                        changes[index], headers: texts[index], digests[index], in: container, db)
                }
            }
        }
    }

    private static func park(
        _ change: ParkedChange, headers: String, _ digest: Data, in container: StoredContainer,
        _ db: Database
    ) throws -> UInt64 {
        let number = try Int64.fetchOne(
            db,
            sql: """
                INSERT INTO parkedChange
                    (container, source, reason, path, headers, body, receivedAt, digest)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT DO NOTHING RETURNING number
                """,
            arguments: [
                container.id, change.source.rawValue, change.reason, change.path, headers,
                Data(change.body), change.receivedAt.stored, digest,
            ])
        if let number { return UInt64(clamping: number) }
        // The source repeats a change that is parked already.
        let known = try Int64.fetchOne(
            db,
            sql: """
                SELECT number FROM parkedChange WHERE container = ? AND source = ? AND digest = ?
                """, arguments: [container.id, change.source.rawValue, digest])
        return UInt64(clamping: known ?? 0)
    }

    /// Returns the SHA-256 of what a source sent, by which a repetition is recognised.
    private static func digest(of change: ParkedChange) -> Data {
        var hasher = SHA256()
        hasher.update(data: change.body)
        hasher.update(data: [0])
        hasher.update(data: Array(change.path.utf8))
        return Data(hasher.finalize())
    }

    package func parkedChanges(
        of container: ContainerKey, after number: UInt64, limit: Int
    ) async throws -> [ParkedChange] {
        try await read { db in
            guard let stored = try db.containerIfKnown(container) else { return [] }
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT * FROM parkedChange WHERE container = ? AND number > ?
                    ORDER BY number LIMIT ?
                    """, arguments: [stored.id, number.stored, max(0, limit)])
            return try PageBounds(rows: limit).page(of: rows) { row in
                (try ParkedChange(row: row, container: container), row.bytes(of: "body", "headers"))
            }.elements
        }
    }

    /// Reads retries or dead letters, at most one page of bytes.
    private func exceptions<Value: Sendable>(
        of key: ContainerKey, in table: String, sql: String, arguments: StatementArguments,
        _ make: @escaping @Sendable (Row) throws -> Value
    ) async throws -> [Value] {
        try await read { [unreadable] db in
            guard let container = try db.containerIfKnown(key) else { return [] }
            let rows = try Row.fetchCursor(db, sql: sql, arguments: [container.id] + arguments)
            return try PageBounds(rows: .max).page(of: rows) { row in
                (try unreadable.value(of: row, in: table, make), row.bytes(of: "body"))
            }.elements
        }
    }

    package func deleteParkedChange(
        _ number: UInt64, of container: ContainerKey
    ) async throws -> Bool {
        try await change(
            container, sql: "DELETE FROM parkedChange WHERE container = ? AND number = ?",
            arguments: [number.stored]) > 0
    }

    /// The number of dead letters that one transaction takes, so that appends can run in between.
    private static let lettersAtATime = 500

    /// Takes dead letters away and returns their number.
    ///
    /// In each portion, `first` is called with the existing ones before they are deleted.
    ///
    /// Each portion is a transaction of its own; after a crash, a repeated call takes the rest.
    /// Deliveries that become dead letters meanwhile stay.
    func letters(
        _ ids: [DeliveryID]?, of key: ContainerKey, _ reason: String?,
        where isWanted: (@Sendable (String) -> Bool)? = nil,
        first: @escaping @Sendable (Database, StoredContainer, [Data]) throws -> Void
    ) async throws -> Int {
        var total = 0
        try await eachPortion(ids, of: key, reason, where: isWanted) { letters, container in
            total += try await take(letters, of: container, first: first)
        }
        return total
    }

    /// Walks through the current dead letters of a container in portions, and passes the IDs of
    /// those that match `ids`, `reason` and `isWanted` to `body`.
    ///
    /// `isWanted` gets the stored delivery.
    func eachPortion(
        _ ids: [DeliveryID]?, of key: ContainerKey, _ reason: String?,
        where isWanted: (@Sendable (String) -> Bool)?,
        _ body: ([Data], StoredContainer) async throws -> Void
    ) async throws {
        let wanted = ids.map { Set($0.map(\.stored)) }
        guard let container = try await read({ try $0.containerIfKnown(key) }),
            let end = try await read({ try LetterPlace.last(of: container, in: $0) })
        else { return }
        var place = LetterPlace.beginning
        while place < end {
            try Task.checkCancellation()
            let (letters, next) = try await read { [place] db in
                try place.portion(
                    upTo: end, of: container, reason, Self.lettersAtATime, where: isWanted, in: db)
            }
            let portion = wanted.map { wanted in letters.filter(wanted.contains) } ?? letters
            if !portion.isEmpty { try await body(portion, container) }
            place = next
        }
    }

    private func take(
        _ letters: [Data], of container: StoredContainer,
        first: @escaping @Sendable (Database, StoredContainer, [Data]) throws -> Void
    ) async throws -> Int {
        try await write(changes: letters.count) { commit in
            try Self.take(letters, of: container, in: commit.db, first: first)
        }
    }

    /// Takes dead letters away within a transaction, looking all of them up together.
    static func take(
        _ letters: [Data], of container: StoredContainer, in db: Database,
        first: (Database, StoredContainer, [Data]) throws -> Void
    ) throws -> Int {
        let find = try db.cachedStatement(
            sql: "SELECT 1 FROM deadLetter WHERE container = ? AND deliveryID = ?")
        // Another call may have taken some of them meanwhile.
        let found = try Row.fetchFirsts(find, arguments: letters.map(container.naming))
        let there = zip(letters, found).filter { $0.1 != nil }.map(\.0)
        guard !there.isEmpty else { return 0 }
        try first(db, container, there)
        let delete = try db.cachedStatement(
            sql: "DELETE FROM deadLetter WHERE container = ? AND deliveryID = ?")
        for id in there { try delete.execute(arguments: container.naming(id)) }
        return there.count
    }
}

extension StoredContainer {
    /// Returns the arguments that identify a delivery of the container.
    func naming(_ deliveryID: Data) -> StatementArguments { [id, deliveryID] }
}

extension ParkedChange {
    init(row: Row, container: ContainerKey) throws {
        let stored = StoredRow(row: row, table: "parkedChange")
        guard case .object(let headers) = try stored.json("headers") else {
            throw stored.damage("headers")
        }
        var texts: [String: String] = [:]
        for case (let name, .string(let value)) in headers.members { texts[name] = value }
        self.init(
            container: container, source: try stored.identifier("source"), reason: row["reason"],
            path: row["path"], body: Array(row["body"] as Data), headers: texts,
            receivedAt: stored.moment("receivedAt"))
        number = stored.number("number")
    }
}
