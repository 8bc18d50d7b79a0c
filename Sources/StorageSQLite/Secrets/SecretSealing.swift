import FoundationEssentials
import Migrations
import RelayModel
import Storage
import StorageSQL

/// Brings the secrets of a file under the configured key, before anybody reads one: those that lie
/// there as they are, and those of the key before.
///
/// One transaction, so that a file is under one key wholly. What stood in its pages is overwritten
/// then; where a start does not come so far, the next one goes on.
struct SecretSealing {
    let path: String
    let vault: SecretVault

    /// Encrypts what is not yet encrypted with the current key, and has nothing left of what was
    /// not encrypted.
    ///
    /// - Returns: Whether anything was written.
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the file needs a key that is not here,
    ///   and ``StorageError/noRoom(_:)`` if there is none to write the file anew.
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
    /// - Returns: What may be left from before, also of an earlier start that did not come further;
    ///   `nil` if there was nothing to do, and nothing is left.
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the file needs a key that is not here.
    func encrypt(_ db: EmbeddedConnection) throws -> SecretRemains? {
        let keyID = try String.fetchOne(db.database, sql: "SELECT keyID FROM secretSeal")
        var remains = SecretRemains.inFreePages
        if let keyID {
            let proof = try String.fetchOne(db.database, sql: "SELECT proof FROM secretSeal")
            remains = try vault.check(keyID, proof ?? "", of: path)
        } else {
            // Earlier versions of the rows may stand in the free space of pages, as they were.
            let isUsed = try Bool.fetchOne(
                db.database, sql: "SELECT EXISTS (SELECT 1 FROM container)")
            if isUsed != true { remains = .nothing }
        }
        guard let current = vault.current else { return nil }
        guard keyID != current.id else { return remains == .nothing ? nil : remains }
        // Deleted content would stay in free space of the pages otherwise.
        try db.execute(sql: "PRAGMA secure_delete = ON")
        try db.inTransaction(.immediate) {
            try reseal(db)
            try note(current, remains, db)
        }
        return remains
    }

    /// Writes the file anew, without the free space of its pages.
    private func overwrite(_ db: EmbeddedConnection) throws {
        do {
            try db.execute(sql: "VACUUM")
        } catch let error as EmbeddedError where StorageError.verdict(on: error) == .noRoom {
            throw StorageError.noRoom(
                "the secrets in \(path) are encrypted, and it must be written anew, so that none "
                    + "stays in its free space as it was: that takes as much room as it has")
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
    /// Brings the secrets under the configured key; see ``SecretSealing``.
    ///
    /// A private list of migrations may not have come so far.
    func sealSecrets(migrations: [Migration]) throws {
        guard migrations.contains(where: { $0.name == "v0012_sealSecrets" }) else { return }
        let db = try openConnection()
        defer { db.close() }
        try makeDurable(db)
        let sealing = SecretSealing(path: path, vault: settings.secrets)
        guard try sealing.run(db) else { return }
        // The write-ahead log holds pages from before.
        try Self.fold(db, after: spool)
    }
}
