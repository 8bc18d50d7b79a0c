import PostgresLink
import Storage
import StorageSQL

/// Encrypts the secrets of a store with the configured key before any is read: plain ones, and
/// those under the previous key.
///
/// This is one transaction, so all secrets of a store are always under one key. The old values stay
/// in the server's files until it vacuums them, and in its log and copies as long as those are
/// kept.
struct ServerSecrets {
    let place: PostgresPlace
    let vault: SecretVault

    /// Encrypts what is not yet encrypted with the current key, as the owner with this epoch.
    ///
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the store needs a key that is not
    ///   configured; ``StorageError/locked(path:holder:)`` if another process owns it by now.
    func seal(_ session: PostgresSession, epoch: Int64) throws {
        let connection = ServerConnection(
            try PostgresPipeline(try session.connect(), patience: PostgresSession.patience))
        try connection.begin()
        do {
            try lock(epoch, of: session.name, connection)
            try seal(Database(connection))
            _ = try connection.commit()
        } catch {
            connection.rollBack()
            throw error
        }
    }

    /// Locks the shard and checks the ownership, as every commit does.
    ///
    /// A process that was paused and has lost the store must not put its secrets under a key that
    /// the new owner may not have.
    private func lock(_ epoch: Int64, of owner: String, _ connection: ServerConnection) throws {
        try connection.pipeline.queue("SELECT shard FROM shard WHERE shard = 0 FOR NO KEY UPDATE")
        let rows = try connection.pipeline.fetch(
            "SELECT epoch FROM ownership WHERE shard = 0 AND owner = $1", [.text(owner)])
        guard rows.count == 1, rows[0, 0] == .integer(epoch) else {
            throw StorageError.locked(path: "\(place)", holder: "another relay")
        }
    }

    /// Checks that the configured keys fit the store; writes nothing.
    ///
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the store needs a key that is not
    ///   configured.
    func check(_ connection: PostgresConnection) throws {
        let rows = try connection.query("SELECT keyID, proof FROM secretSeal")
        guard let seal = rows.first, let keyID = seal[0] else { return }
        try vault.check(keyID, seal[1] ?? "", of: "\(place)")
    }

    private func seal(_ db: Database) throws {
        let seal = try Row.fetchOne(db, sql: "SELECT keyID, proof FROM secretSeal FOR UPDATE")
        let keyID: String? = seal?["keyID"]
        if let keyID { try vault.check(keyID, seal?["proof"] ?? "", of: "\(place)") }
        guard let current = vault.current, keyID != current.id else { return }
        for (table, column, expression) in SecretPlace.columns {
            try reseal(table, column, expression, db)
        }
        try db.execute(
            sql: """
                INSERT INTO secretSeal (id, keyID, proof) VALUES (1, ?, ?)
                ON CONFLICT (id) DO UPDATE SET keyID = excluded.keyID, proof = excluded.proof
                """, arguments: [current.id, try vault.proof()])
    }

    private func reseal(
        _ table: String, _ column: String, _ expression: String, _ db: Database
    ) throws {
        let update = try db.makeStatement(
            sql: "UPDATE \(table) SET \(column) = ? WHERE ctid = CAST(? AS tid)")
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT CAST(ctid AS text) AS line, \(column) AS secret, \(expression) AS place
                FROM \(table) WHERE \(column) IS NOT NULL
                """)
        for row in rows {
            let place: String = row["place"]
            let line: String = row["line"]
            switch row.columns.value(at: 1) {
            case .text(let text):
                try update.execute(
                    arguments: [try vault.seal(try vault.open(text, at: place), at: place), line])
            case .bytes(let data):
                try update.execute(
                    arguments: [
                        try vault.sealBytes(try vault.openBytes(data, at: place), at: place), line,
                    ])
            default: break
            }
        }
    }
}
