package import RelayModel
package import Storage

extension RelayStore {
    /// Tokens that are over and are kept, so that it is said of them that they were there.
    private static let mostEndedTokens = 1000

    package func save(_ token: AdminToken) async throws {
        try await write { commit in
            let container = try token.container.map { try commit.container($0).id }
            try commit.db.execute(
                sql: """
                    INSERT INTO adminToken
                        (id, verifier, label, mayChange, container, createdAt, endsAt, revokedAt)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    token.id, token.verifier, token.label, token.mayChange, container,
                    token.createdAt.stored, token.endsAt?.stored, token.revokedAt?.stored,
                ])
            // Whoever has one made for each task, for an hour, would have the list grow for ever.
            try commit.db.execute(
                sql: """
                    DELETE FROM adminToken WHERE id IN (
                        SELECT id FROM adminToken WHERE revokedAt IS NOT NULL OR endsAt <= ?1
                        ORDER BY coalesce(revokedAt, endsAt) DESC, id LIMIT -1 OFFSET ?2)
                    """, arguments: [token.createdAt.stored, Self.mostEndedTokens])
        }
    }

    package func adminTokens() async throws -> [AdminToken] {
        try await read { db in
            try Row.fetchAll(
                db, sql: "\(AdminToken.selection) ORDER BY adminToken.createdAt DESC, adminToken.id"
            ).map(AdminToken.init(row:))
        }
    }

    package func adminToken(verifier: String) async throws -> AdminToken? {
        try await read { db in
            try Row.fetchOne(
                db, sql: "\(AdminToken.selection) WHERE verifier = ?", arguments: [verifier]
            ).map(AdminToken.init(row:))
        }
    }

    package func revokeAdminToken(_ id: String, at now: Timestamp) async throws -> Bool {
        try await write { commit in
            return try commit.db.executeCounting(
                sql: "UPDATE adminToken SET revokedAt = ? WHERE id = ? AND revokedAt IS NULL",
                arguments: [now.stored, id]) > 0
        }
    }

    package func beginAudit(_ entry: AuditEntry) async throws -> Int64 {
        try await write { commit in
            let statement = try commit.db.cachedStatement(
                sql: """
                    INSERT INTO auditEntry (at, caller, method, path, status, code)
                    VALUES (?, ?, ?, ?, ?, ?) RETURNING id
                    """)
            let arguments: StatementArguments = [
                entry.at.stored, entry.caller, entry.method, entry.path, entry.status, entry.code,
            ]
            return try statement.inserted(arguments, in: "auditEntry")
        }
    }

    package func endAudit(_ id: Int64, status: Int, code: String?) async throws {
        try await write { commit in
            try commit.db.cachedStatement(
                sql: "UPDATE auditEntry SET status = ?, code = ? WHERE id = ?"
            ).execute(arguments: [status, code, id])
        }
    }

    package func auditEntries(before id: Int64?, limit: Int) async throws -> [AuditEntry] {
        try await read { db in
            try Row.fetchAll(
                db, sql: "SELECT * FROM auditEntry WHERE id < ? ORDER BY id DESC LIMIT ?",
                arguments: [id ?? .max, max(0, limit)]
            ).map { row in
                var entry = AuditEntry(
                    at: Timestamp(stored: row["at"]), caller: row["caller"],
                    method: row["method"], path: row["path"])
                entry.id = row["id"]
                entry.status = row["status"]
                entry.code = row["code"]
                return entry
            }
        }
    }

    package func pruneAudit(before cutoff: Timestamp, most: Int) async throws -> Int {
        let count = try await inPortions(Self.auditPortion) { store in
            try await store.write { commit in
                return try commit.db.executeCounting(
                    sql: """
                        DELETE FROM auditEntry WHERE id IN (
                            SELECT id FROM auditEntry WHERE at < ? ORDER BY at LIMIT ?)
                        """, arguments: [cutoff.stored, Self.auditPortion])
            }
        }
        let shares = try await auditShares(beyond: most)
        guard let level = EvenLevel(of: shares.map { $0.count }, within: most).level else {
            return count
        }
        // Who has most entries loses the oldest of these: even a token that may only read fills the
        // log with what it is refused, and must not push out what others did.
        var dropped = 0
        for share in shares where share.count > level {
            dropped += try await dropAudit(of: share.caller, share.count - level)
        }
        return count + dropped
    }

    /// Entries of the audit log that one transaction deletes.
    private static let auditPortion = 500

    /// How many entries each caller has; none if there are no more than `most`.
    private func auditShares(beyond most: Int) async throws -> [(caller: String, count: Int)] {
        try await read { db -> [(caller: String, count: Int)] in
            // No more than these can be there, and to count them takes longer.
            let span = try Int.fetchOne(
                db,
                sql: """
                    SELECT (SELECT max(id) FROM auditEntry) - (SELECT min(id) FROM auditEntry) + 1
                    """)
            guard span ?? 0 > most else { return [] }
            return try Row.fetchAll(
                db, sql: "SELECT caller, count(*) FROM auditEntry GROUP BY caller"
            ).map { (caller: $0[0] as String, count: $0[1] as Int) }
        }
    }

    /// Deletes the oldest entries of a caller, so many of them.
    private func dropAudit(of caller: String, _ count: Int) async throws -> Int {
        var last: Int64 = 0
        var rest = count
        while rest > 0 {
            try Task.checkCancellation()
            let (after, portion) = (last, min(rest, Self.auditPortion))
            // Each portion begins behind the one before: what lies between is others'.
            let ids = try await read { db in
                try Int64.fetchAll(
                    db,
                    sql: """
                        SELECT id FROM auditEntry WHERE id > ? AND caller = ?
                        ORDER BY id LIMIT ?
                        """, arguments: [after, caller, portion])
            }
            guard let end = ids.last else { break }
            let gone = try await write { commit in
                return try commit.db.executeCounting(
                    sql: "DELETE FROM auditEntry WHERE id > ? AND id <= ? AND caller = ?",
                    arguments: [after, end, caller])
            }
            rest -= gone
            last = end
        }
        return count - rest
    }
}

extension AdminToken {
    static let selection = """
        SELECT adminToken.*, container.name AS containerName, container.environment
        FROM adminToken LEFT JOIN container ON container.id = adminToken.container
        """

    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "adminToken")
        let isBound = row["container"] as Int64? != nil
        self.init(
            id: row["id"], verifier: row["verifier"], label: row["label"],
            mayChange: row["mayChange"], container: isBound ? try stored.containerKey() : nil,
            createdAt: stored.moment("createdAt"),
            endsAt: (row["endsAt"] as Int64?).map(Timestamp.init(stored:)))
        revokedAt = (row["revokedAt"] as Int64?).map(Timestamp.init(stored:))
    }
}
