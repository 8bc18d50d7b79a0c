import FoundationEssentials
import Migrations
import RelayModel
import Storage
import StorageSQL

/// Encrypts the secrets of a file with the configured key before any is read: plain ones, and those
/// under the previous key.
///
/// This is one transaction, so all secrets of a file are always under one key. Afterwards the old
/// content of its pages is overwritten. If a start does not get that far, the next one continues.
struct SecretSealing {
    let path: String
    let vault: SecretVault

    /// Encrypts what is not yet encrypted with the current key, and removes all remains of plain
    /// secrets.
    ///
    /// - Returns: Whether anything was written.
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the file needs a key that is not
    ///   configured, and ``StorageError/noRoom(_:)`` if there is no space to rewrite the file.
    func run(_ db: EmbeddedConnection) throws -> Bool {
        guard let remains = try encrypt(db), let current = vault.current else { return false }
        if remains == .inFreePages {
            try overwrite(db)
            try note(current, .nothing, db)
        }
        return true
    }

    /// Encrypts what is not yet encrypted with the current key.
    ///
    /// - Returns: The remains that may be left from before, including those of an interrupted
    ///   start; `nil` if there was nothing to do and there are no remains.
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the file needs a key that is not
    ///   configured.
    func encrypt(_ db: EmbeddedConnection) throws -> SecretRemains? {
        let keyID = try String.fetchOne(db.database, sql: "SELECT keyID FROM secretSeal")
        var remains = SecretRemains.inFreePages
        if let keyID {
            let proof = try String.fetchOne(db.database, sql: "SELECT proof FROM secretSeal")
            remains = try vault.check(keyID, proof ?? "", of: path)
        } else {
            // Earlier versions of the rows may be in the free space of pages, in plain text.
            let isUsed = try Bool.fetchOne(
                db.database, sql: "SELECT EXISTS (SELECT 1 FROM container)")
            if isUsed != true { remains = .nothing }
        }
        guard let current = vault.current else { return nil }
        guard keyID != current.id else { return remains == .nothing ? nil : remains }
        // Deleted content would stay in the free space of the pages otherwise.
        try db.execute(sql: "PRAGMA secure_delete = ON")
        try db.inTransaction(.immediate) {
            try reseal(db)
            try note(current, remains, db)
        }
        return remains
    }

    /// Rewrites the file without the free space of its pages.
    private func overwrite(_ db: EmbeddedConnection) throws {
        do {
            try db.execute(sql: "VACUUM")
        } catch let error as EmbeddedError where StorageError.verdict(on: error) == .noRoom {
            throw StorageError.noRoom(
                "the secrets in \(path) are encrypted now, but the file must be rewritten, "
                    + "because the unencrypted ones may remain in its free space: that needs as "
                    + "much disk space again as the file takes")
        }
    }

    private func note(
        _ key: SecretKey, _ remains: SecretRemains, _ db: EmbeddedConnection
    ) throws {
        try db.database.execute(
            sql: """
                INSERT INTO secretSeal (id, keyID, proof) VALUES (1, ?, ?)
                ON CONFLICT DO UPDATE SET keyID = excluded.keyID, proof = excluded.proof
                """, arguments: [key.id, try vault.proof(remains)])
    }

    private func reseal(_ db: EmbeddedConnection) throws {
        try db.withFunction(named: "belfry_reseal", reseal) {
            for (table, column, place) in SecretPlace.columns {
                try db.execute(
                    sql: """
                        UPDATE \(table) SET \(column) = belfry_reseal(\(column), \(place))
                        WHERE \(column) IS NOT NULL
                        """)
            }
        }
    }

    private func reseal(_ value: SQLValue, at place: String) throws -> SQLValue {
        switch value {
        case .text(let text): .text(try vault.seal(try vault.open(text, at: place), at: place))
        case .bytes(let data):
            .bytes(try vault.sealBytes(vault.openBytes(data, at: place), at: place))
        case .null, .integer, .real: value
        }
    }
}

extension StoreConnections {
    /// Encrypts the secrets with the configured key; see ``SecretSealing``.
    ///
    /// It does nothing if a test's `migrations` do not include the table that it needs.
    func sealSecrets(migrations: [Migration]) throws {
        guard migrations.contains(where: { $0.name == "v0012_sealSecrets" }) else { return }
        let db = try openConnection()
        defer { db.close() }
        try makeDurable(db)
        let sealing = SecretSealing(path: path, vault: settings.secrets)
        guard try sealing.run(db) else { return }
        // The write-ahead log contains pages from before the encryption.
        try Self.fold(db, after: spool)
    }
}
