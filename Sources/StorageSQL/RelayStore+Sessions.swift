import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore {
    package func sessionSecret() async throws -> [UInt8] {
        let vault = settings.secrets
        return try await read { db in
            let statement = try db.cachedStatement(sql: "SELECT secret FROM sessionSecret")
            guard let secret = try Data.fetchOne(statement) else {
                throw StorageError.damaged(
                    path: "sessionSecret", reason: "the store has no secret for sessions")
            }
            return try vault.openBytes(secret, at: SecretPlace.session)
        }
    }

    package func session(
        _ id: UUIDBytes, of container: ContainerKey
    ) async throws -> UserSession? {
        try await read { db in
            guard let known = try db.containerIfKnown(container) else { return nil }
            return try Self.session(id, of: known, in: db)
        }
    }

    package func startSession(_ session: UserSession) async throws -> UserSession {
        try await write(of: session.container) { commit in
            let container = try commit.container(session.container)
            let known = try Self.session(session.id, of: container, in: commit.db)
            if let known, known.revokedAt != nil || session.startedAt < known.endsAt {
                return known
            }
            let owner = try Self.save(session, of: container, in: commit.db)
            _ = try commit.db.deleteRows(
                of: "userSession", by: ["container", "id"],
                """
                WHERE owner = ? AND revokedAt IS NULL
                ORDER BY startedAt DESC, id LIMIT -1 OFFSET ?
                """, [owner, Limits.maximumSessionsPerUser])
            return session
        }
    }

    package func revokeSession(_ session: UserSession, at now: Timestamp) async throws {
        try await write(of: session.container) { commit in
            let container = try commit.container(session.container)
            var session =
                try Self.session(session.id, of: container, in: commit.db)?
                .lasting(as: session) ?? session
            guard session.revokedAt == nil else { return }
            session.revokedAt = now
            _ = try Self.save(session, of: container, in: commit.db)
        }
    }

    package func revokeSessions(of owner: InboxOwner, at now: Timestamp) async throws -> Int {
        try await change(
            owner.container,
            sql: """
                UPDATE userSession SET revokedAt = ?2
                WHERE container = ?1 AND revokedAt IS NULL
                    AND max(endsAt, coalesce(tokenEndsAt, 0)) > ?2
                    AND owner = (SELECT id FROM user WHERE container = ?1 AND name = ?3)
                """, arguments: [now.stored, owner.user.rawValue])
    }

    package func sessions(
        of container: ContainerKey, user: UserID?, at now: Timestamp, limit: Int
    ) async throws -> [UserSession] {
        var arguments: StatementArguments = [now.stored, max(0, limit)]
        if let user { arguments += [user.rawValue] }
        return try await rows(
            of: container,
            sql: user == nil ? ListStatements.sessions : ListStatements.sessionsOfUser,
            arguments: arguments
        ) { try UserSession(row: $0, container: container) }
    }

    package func pruneSessions(at now: Timestamp, limit: Int = 1000) async throws -> Int {
        let sessions = AgingRows.sessions
        // The deletion begins at the first row found here, so that the writer does not walk over
        // rows that were deleted before.
        let first = try await read { db in try sessions.first(from: .min, in: db) }
        guard let first, first <= now.stored else { return 0 }
        return try await write { commit in
            return try sessions.delete(
                from: first, to: now.stored, limit: max(0, limit), in: commit.db)
        }
    }

    package func useSignature(
        _ nonce: [UInt8], of container: ContainerKey, until: Timestamp, at now: Timestamp
    ) async throws -> Bool {
        try await write { commit in
            let number = try commit.container(container).id
            // Upkeep deletes signatures that are too old.
            return try commit.db.cachedStatement(
                sql: """
                    INSERT INTO usedSignature (container, nonce, rememberedUntil) VALUES (?, ?, ?)
                    ON CONFLICT (container, nonce) DO UPDATE
                    SET rememberedUntil = excluded.rememberedUntil
                    WHERE usedSignature.rememberedUntil < ?
                    """
            ).executeCounting(
                arguments: [number, Data(nonce), until.stored, now.stored]) > 0
        }
    }

    private static func session(
        _ id: UUIDBytes, of container: StoredContainer, in db: Database
    ) throws -> UserSession? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT userSession.*, user.name AS ownerName
                FROM userSession JOIN user ON user.id = userSession.owner
                WHERE userSession.container = ? AND userSession.id = ?
                """)
        return try Row.fetchOne(statement, arguments: [container.id, Data(id.bytes)])
            .map { try UserSession(row: $0, container: container.key) }
    }

    /// Writes a session and returns its user's number.
    private static func save(
        _ session: UserSession, of container: StoredContainer, in db: Database
    ) throws -> Int64 {
        let owner = try db.user(session.user, of: container)
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO userSession
                    (container, id, owner, startedAt, endsAt, revokedAt, tokenEndsAt)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (container, id) DO UPDATE SET startedAt = excluded.startedAt,
                    endsAt = excluded.endsAt, revokedAt = excluded.revokedAt,
                    tokenEndsAt = coalesce(excluded.tokenEndsAt, userSession.tokenEndsAt)
                """)
        try statement.execute(
            arguments: [
                container.id, Data(session.id.bytes), owner, session.startedAt.stored,
                session.endsAt.stored, session.revokedAt?.stored, session.tokenEndsAt?.stored,
            ])
        return owner
    }
}

extension UserSession {
    init(row: Row, container: ContainerKey) throws {
        let stored = StoredRow(row: row, table: "userSession")
        self.init(
            id: try stored.require("id", UUIDBytes(bytes: row["id"] as Data)),
            container: container, user: try stored.identifier("ownerName"),
            startedAt: stored.moment("startedAt"), endsAt: stored.moment("endsAt"),
            revokedAt: (row["revokedAt"] as Int64?).map(Timestamp.init(stored:)),
            tokenEndsAt: (row["tokenEndsAt"] as Int64?).map(Timestamp.init(stored:)))
    }

    /// Returns this session, remembered for at least as long as `other` would be.
    func lasting(as other: UserSession) -> UserSession {
        var session = self
        session.tokenEndsAt = [tokenEndsAt, other.tokenEndsAt].compactMap(\.self).max()
        return session
    }
}
