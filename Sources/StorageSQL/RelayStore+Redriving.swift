import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore {
    package func redriveDeadLetters(
        _ ids: [DeliveryID]?, of container: ContainerKey, reason: String?, at now: Timestamp
    ) async throws -> Redriving {
        let redriven = try await letters(
            ids, of: container, reason,
            where: { text in LetterText(text).map { !$0.isExpired(at: now) } ?? false },
            first: { try Self.redrive($2, of: $1, at: now, in: $0) })
        var expired = 0
        try await eachPortion(
            ids, of: container, reason,
            where: { text in LetterText(text)?.isExpired(at: now) ?? false },
            { letters, _ in expired += letters.count })
        return Redriving(redriven: redriven, expired: expired)
    }

    /// Turns dead letters into retries.
    ///
    /// Their attempts start anew, and they keep the reason as information.
    static func redrive(
        _ ids: [Data], of container: StoredContainer, at now: Timestamp, in db: Database
    ) throws {
        let find = try db.cachedStatement(
            sql: "SELECT body FROM deadLetter WHERE container = ? AND deliveryID = ?")
        let found = try Row.fetchFirsts(find, arguments: ids.map(container.naming))
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO retry
                    (deliveryID, container, position, "offset", subscriptionSerial,
                    deviceSerial, attempts, dueAt, decidedAt, reason, body, owner, lane,
                    collapses)
                SELECT deliveryID, container, position, "offset", subscriptionSerial,
                    deviceSerial, 0, ?, ?, reason, body, owner, ?, ?
                FROM deadLetter WHERE container = ? AND deliveryID = ?
                ON CONFLICT (deliveryID) DO UPDATE SET attempts = 0, dueAt = excluded.dueAt,
                    decidedAt = excluded.decidedAt
                """)
        for (id, row) in zip(ids, found) {
            guard let row, let text = LetterText(row[0] as String) else {
                throw StorageError.damaged(
                    path: "deadLetter", reason: DeadLetter.unreadableReason)
            }
            let moments: StatementArguments = [now.stored, now.stored, text.lane, text.collapses]
            try insert.execute(arguments: moments + container.naming(id))
        }
    }

    package func waiting(among ids: [DeliveryID]) async throws -> Set<DeliveryID> {
        guard !ids.isEmpty else { return [] }
        return try await read { db in
            let find = try db.cachedStatement(sql: "SELECT 1 FROM retry WHERE deliveryID = ?")
            let found = try Row.fetchFirsts(
                find, arguments: ids.map { id -> StatementArguments in [id.stored] })
            return Set(zip(ids, found).filter { $0.1 != nil }.map(\.0))
        }
    }

    package func exception(_ id: DeliveryID) async throws -> DeliveryException? {
        try await read { [unreadable] db in
            let retry = try Row.fetchOne(
                db, sql: "SELECT * FROM retry WHERE deliveryID = ?", arguments: [id.stored])
            if let retry {
                return try unreadable.value(of: retry, in: "retry") { .retry(try Retry(row: $0)) }
            }
            let letter = try Row.fetchOne(
                db, sql: "SELECT * FROM deadLetter WHERE deliveryID = ?", arguments: [id.stored])
            return try letter.flatMap {
                try unreadable.value(of: $0, in: "deadLetter") {
                    .deadLetter(try DeadLetter(row: $0))
                }
            }
        }
    }
}
