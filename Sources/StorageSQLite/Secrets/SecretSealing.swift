import Foundation
import GRDB
import Migrations
import RelayModel
import Storage
import Synchronization

/// Brings the secrets of a file under the configured key, before anybody reads one: those that lie
/// there as they are, and those of the key before.
///
/// One transaction, so that a file is under one key wholly. What stood in its pages is overwritten.
struct SecretSealing {
    let path: String
    let vault: SecretVault

    private static let proof = "the key that opens this is the right one"

    /// Encrypts what is not yet encrypted with the current key.
    ///
    /// - Returns: Whether anything was written.
    /// - Throws: ``StorageError/secrets(path:reason:)`` if the file needs a key that is not here.
    func run(_ db: Database) throws -> Bool {
        let keyID = try String.fetchOne(db, sql: "SELECT keyID FROM secretSeal")
        if let keyID {
            let proof = try String.fetchOne(db, sql: "SELECT proof FROM secretSeal")
            try check(keyID, proof ?? "")
        }
        guard let current = vault.current, keyID != current.id else { return false }
        // Deleted content would stay in free space of the pages otherwise.
        try db.execute(sql: "PRAGMA secure_delete = ON")
        try db.inTransaction(.immediate) {
            try reseal(db)
            try db.execute(
                sql: """
                    INSERT INTO secretSeal (id, keyID, proof) VALUES (1, ?, ?)
                    ON CONFLICT DO UPDATE SET keyID = excluded.keyID, proof = excluded.proof
                    """,
                arguments: [
                    current.id, try vault.seal(Self.proof, at: SecretPlace.proof),
                ])
            return .commit
        }
        // Earlier versions of the rows may stand in the free space of pages, as they were.
        let isUsed = try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM container)") == true
        if keyID == nil, isUsed { try db.execute(sql: "VACUUM") }
        return true
    }

    private func check(_ keyID: String, _ proof: String) throws {
        guard let current = vault.current else {
            throw StorageError.secrets(
                path: path,
                reason: "they are encrypted with the key \(keyID), and none is configured: set "
                    + "secrets.keyFile or secrets.key")
        }
        let keys = [current] + vault.previous
        guard keys.contains(where: { $0.id == keyID }) else {
            throw StorageError.secrets(
                path: path,
                reason: "they are encrypted with the key \(keyID), and the configured one is "
                    + "\(current.id): set the right one, or name the one before in "
                    + "secrets.previousKeyFile")
        }
        guard try vault.open(proof, at: SecretPlace.proof) == Self.proof else {
            throw StorageError.damaged(path: path, reason: "the proof of the secrets' key is wrong")
        }
    }

    private func reseal(_ db: Database) throws {
        let failure = FirstFailure()
        let function = DatabaseFunction("belfry_reseal", argumentCount: 2) { [vault] values in
            do {
                let place = String.fromDatabaseValue(values[1]) ?? ""
                return try Self.reseal(values[0], at: place, vault)
            } catch {
                failure.note(error)
                throw error
            }
        }
        db.add(function: function)
        defer { db.remove(function: function) }
        for (table, column, place) in SecretPlace.columns {
            do {
                try db.execute(
                    sql: """
                        UPDATE \(table) SET \(column) = belfry_reseal(\(column), \(place))
                        WHERE \(column) IS NOT NULL
                        """)
            } catch {
                throw failure.error ?? error
            }
        }
    }

    private static func reseal(
        _ value: DatabaseValue, at place: String, _ vault: SecretVault
    ) throws -> (any DatabaseValueConvertible)? {
        switch value.storage {
        case .string(let text): return try vault.seal(try vault.open(text, at: place), at: place)
        case .blob(let data):
            return try vault.sealBytes(vault.openBytes(data, at: place), at: place)
        case .null, .int64, .double: return value
        }
    }
}

extension SecretVault {
    /// Bytes are sealed as the text of their digits, and lie in the column as the text's bytes.
    func sealBytes(_ bytes: [UInt8], at place: String) throws -> Data {
        guard current != nil else { return Data(bytes) }
        return Data(try seal(Hexadecimal.encode(bytes), at: place).utf8)
    }

    /// The bytes that ``sealBytes(_:at:)`` took.
    func openBytes(_ stored: Data, at place: String) throws -> [UInt8] {
        // A secret that lies there as it is has 32 bytes; a sealed one has more.
        guard stored.count > 32, let text = String(validating: stored, as: UTF8.self) else {
            return Array(stored)
        }
        guard let bytes = Hexadecimal.decode(try open(text, at: place)) else {
            throw StorageError.damaged(path: place, reason: "the secret cannot be decrypted")
        }
        return bytes
    }
}

/// What failed first within a statement, of which SQLite keeps only the text.
private final class FirstFailure: Sendable {
    private let noted = Mutex<(any Error)?>(nil)

    var error: (any Error)? { noted.withLock { $0 } }

    func note(_ error: any Error) {
        noted.withLock { $0 = $0 ?? error }
    }
}

extension StoreConnections {
    /// Brings the secrets under the configured key; see ``SecretSealing``.
    ///
    /// A private list of migrations may not have come so far.
    func sealSecrets(migrations: [Migration]) throws {
        guard migrations.contains(where: { $0.name == "v0012_sealSecrets" }) else { return }
        let queue = try openQueue()
        defer { try? queue.close() }
        try queue.writeWithoutTransaction { db in
            try makeDurable(db)
            let sealing = SecretSealing(path: path, vault: settings.secrets)
            guard try sealing.run(db) else { return }
            // The write-ahead log holds pages from before.
            try Self.fold(db)
        }
    }
}
