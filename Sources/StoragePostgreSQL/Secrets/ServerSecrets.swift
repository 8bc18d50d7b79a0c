import PostgresLink
import Storage
import StorageSQL

/// Brings the secrets of a store under the configured key, before anybody reads one: those that lie
/// there as they are, and those of the key before.
///
/// One transaction, so that a store is under one key wholly. What stood there before stays in the
/// server's files until it vacuums them, and in its log and copies for as long as those are kept.
struct ServerSecrets {
    let place: PostgresPlace
    let vault: SecretVault

    /// Encrypts what is not yet encrypted with the current key.
    ///
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the store needs a key that is not here.
    func seal(_ session: PostgresSession) throws {
        let connection = ServerConnection(
            try PostgresPipeline(try session.connect(), patience: PostgresSession.patience))
        try connection.begin()
        do {
            try seal(Database(connection))
            _ = try connection.commit()
        } catch {
            connection.rollBack()
            throw error
        }
    }

    /// Sees whether the keys here are those of the store; writes nothing.
    ///
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the store needs a key that is not here.
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
