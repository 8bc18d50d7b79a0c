package import RelayModel
package import Storage

extension RelayStore {
    /// The maximum number of ended tokens that are kept, so that lists can show that they existed.
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
            // Without this limit, an operator that creates a short-lived token for each task would
            // make the list grow forever.
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
        // The callers with most entries lose their oldest ones. Even a read-only token can fill the
        // log with refused calls, and must not push out the entries of others.
        var dropped = 0
        for share in shares where share.count > level {
            dropped += try await dropAudit(of: share.caller, share.count - level)
        }
        return count + dropped
    }

    /// The number of audit entries that one transaction deletes.
    private static let auditPortion = 500

    /// Returns the number of entries of each caller, or nothing if there are at most `most` in
    /// total.
    private func auditShares(beyond most: Int) async throws -> [(caller: String, count: Int)] {
        try await read { db -> [(caller: String, count: Int)] in
            // The span of IDs is an upper bound of the count, and counting takes longer.
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

    /// Deletes the oldest `count` entries of a caller.
    private func dropAudit(of caller: String, _ count: Int) async throws -> Int {
        var last: Int64 = 0
        var rest = count
        while rest > 0 {
            try Task.checkCancellation()
            let (after, portion) = (last, min(rest, Self.auditPortion))
            // Each portion begins after the previous one. Entries in between belong to other
            // callers.
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
