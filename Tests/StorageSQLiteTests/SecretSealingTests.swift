import Foundation
import GRDB
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Secrets in the file are encrypted under a key that is not in it.
@Suite struct SecretSealingTests {
    private static let first = key(1)
    private static let second = key(2)
    private static let pem = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END-----"
    private static let shared = "a shared secret of at least 32 bytes"
    private static let source = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private static let token = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJURUFNIn0.c2lnbmF0dXJl"

    private static func key(_ byte: UInt8) -> SecretKey {
        guard let key = SecretKey(bytes: Array(repeating: byte, count: 32)) else {
            preconditionFailure("32 bytes are a key")
        }
        return key
    }

    private static func open(
        _ home: TemporaryStore, _ current: SecretKey?, before: SecretKey...
    ) throws -> RelayStore {
        var settings = StoreSettings.forTests
        settings.secrets = SecretVault(current: current, previous: before)
        return try home.open(settings)
    }

    private static func save(_ store: RelayStore) async throws {
        var settings = ContainerSettings(key: Sample.container, topics: ["t"])
        settings.credential = ProviderCredential(
            teamID: "TEAM", keyID: "KEY", privateKeyPEM: pem)
        settings.userTokens = UserTokenSettings(sharedSecret: shared)
        try await store.save(settings, at: Sample.moment(0))
        try await store.save(
            StoredSource(
                container: Sample.container, name: Sample.identifier("shop"),
                definition: ["secret": .string(source)], savedAt: Sample.moment(0)))
        try await store.saveProviderToken(
            StoredProviderToken(
                teamID: "TEAM", keyID: "KEY", environment: .development, token: token,
                issuedAt: Sample.moment(0)))
    }

    private static func check(_ store: RelayStore, session: [UInt8]) async throws {
        let settings = try #require(try await store.container(Sample.container))
        #expect(settings.credential?.privateKeyPEM == pem)
        #expect(settings.userTokens?.sharedSecret == shared)
        #expect(try await store.containers() == [settings])
        let sources = try await store.sources(of: Sample.container)
        #expect(sources.map(\.definition) == [["secret": .string(source)]])
        #expect(try await store.providerTokens().map(\.token) == [token])
        #expect(try await store.sessionSecret() == session)
    }

    /// Returns the secrets that can be read in the store's files.
    private static func readable(_ path: String, session: [UInt8]) throws -> [String] {
        var bytes = Data()
        for ending in ["", "-wal"] {
            bytes += FileManager.default.contents(atPath: path + ending) ?? Data()
        }
        let secrets = ["MIGHAgEAMBMGByqGSM49", shared, source, token]
        return secrets.filter { bytes.range(of: Data($0.utf8)) != nil }
            + (bytes.range(of: Data(session)) == nil ? [] : ["session"])
    }

    @Test func `with a key no secret is readable in the file or in a backup`() async throws {
        let home = try TemporaryStore()
        let store = try Self.open(home, Self.first)
        let session = try await store.sessionSecret()
        #expect(session.count == 32)
        try await Self.save(store)
        try await Self.check(store, session: session)
        #expect(try Self.readable(home.path, session: session) == [])
        let copy = home.path + ".copy"
        _ = try RelayStore.backUp(path: home.path, to: copy)
        #expect(try Self.readable(copy, session: session) == [])
        await store.close()
        #expect(try Self.readable(home.path, session: session) == [])
        let again = try Self.open(home, Self.first)
        try await Self.check(again, session: session)
        await again.close()
    }

    @Test func `plain secrets are encrypted with the key at the start`() async throws {
        let home = try TemporaryStore()
        let plain = try Self.open(home, nil)
        let session = try await plain.sessionSecret()
        // Saved twice, so that an earlier version is in the free space of a page.
        try await Self.save(plain)
        var longer = try #require(try await plain.container(Sample.container))
        longer.userTokens?.issuer = String(repeating: "https://id.example/", count: 40)
        try await plain.save(longer, at: Sample.moment(1))
        try await Self.save(plain)
        await plain.close()
        #expect(try Self.readable(home.path, session: session).count == 5)
        let sealed = try Self.open(home, Self.first)
        #expect(sealed.secretsKeyID == Self.first.id)
        try await Self.check(sealed, session: session)
        #expect(try Self.readable(home.path, session: session) == [])
        await sealed.close()
    }

    /// Returns the number of free pages of a file, and the remains of plain secrets that its proof
    /// reports.
    private static func left(_ path: String) throws -> (free: Int?, remains: SecretRemains) {
        let queue = try DatabaseQueue(path: path)
        defer { try? queue.close() }
        return try queue.read { db -> (free: Int?, remains: SecretRemains) in
            let proof = try String.fetchOne(db, sql: "SELECT proof FROM secretSeal") ?? ""
            return (
                try Int.fetchOne(db, sql: "PRAGMA freelist_count"),
                try SecretVault(current: first).check(first.id, proof, of: path)
            )
        }
    }

    /// Encrypts the secrets without rewriting the file.
    ///
    /// A process leaves such a file if it ends after the encryption, or has no room to rewrite the
    /// file.
    private static func encryptAlone(_ path: String) throws {
        let db = try StoreConnections(path: path, settings: .forTests).openConnection()
        defer { db.close() }
        try db.execute(
            sql: """
                CREATE TABLE former (secret BLOB);
                INSERT INTO former (secret) VALUES (zeroblob(100000));
                DROP TABLE former
                """)
        let sealing = SecretSealing(path: path, vault: SecretVault(current: first))
        #expect(try sealing.encrypt(db) == .inFreePages)
    }

    @Test func `remains that one start did not overwrite are overwritten by the next`() async throws
    {
        let home = try TemporaryStore()
        let plain = try Self.open(home, nil)
        let session = try await plain.sessionSecret()
        try await Self.save(plain)
        await plain.close()
        try Self.encryptAlone(home.path)
        let before = try Self.left(home.path)
        #expect(before.free ?? 0 > 20)
        #expect(before.remains == .inFreePages)
        let sealed = try Self.open(home, Self.first)
        try await Self.check(sealed, session: session)
        #expect(try Self.readable(home.path, session: session) == [])
        await sealed.close()
        let after = try Self.left(home.path)
        // Pages that a start frees afterwards are overwritten at once.
        #expect(after.free ?? .max < 5)
        #expect(after.remains == .nothing)
        // Replacing the first key does not lose track of the remains either.
        let other = try TemporaryStore()
        await (try Self.open(other, nil)).close()
        let used = try Self.open(other, nil)
        try await Self.save(used)
        await used.close()
        try Self.encryptAlone(other.path)
        await (try Self.open(other, Self.second, before: Self.first)).close()
        let queue = try DatabaseQueue(path: other.path)
        defer { try? queue.close() }
        let free = try await queue.read { try Int.fetchOne($0, sql: "PRAGMA freelist_count") }
        #expect(free ?? .max < 5)
    }

    @Test func `a file can only be opened with its own key`() async throws {
        let home = try TemporaryStore()
        await (try Self.open(home, Self.first)).close()
        let missing = StorageError.secrets(
            path: home.path,
            reason: "they are encrypted with the key \(Self.first.id), but no key is configured: "
                + "set secrets.keyFile or secrets.key")
        #expect(throws: missing) { try Self.open(home, nil) }
        let wrong = StorageError.secrets(
            path: home.path,
            reason: "they are encrypted with the key \(Self.first.id), but the configured one is "
                + "\(Self.second.id): set the right one, or name the previous one in "
                + "secrets.previousKeyFile")
        #expect(throws: wrong) { try Self.open(home, Self.second) }
        await (try Self.open(home, Self.first)).close()
    }

    @Test func `a key is replaced by one that names it as the previous key`() async throws {
        let home = try TemporaryStore()
        let old = try Self.open(home, Self.first)
        let session = try await old.sessionSecret()
        try await Self.save(old)
        await old.close()
        let new = try Self.open(home, Self.second, before: Self.first)
        try await Self.check(new, session: session)
        await new.close()
        let alone = try Self.open(home, Self.second)
        try await Self.check(alone, session: session)
        await alone.close()
        #expect(throws: StorageError.self) { try Self.open(home, Self.first) }
    }

    @Test func `a secret that was altered or moved to another row is refused`() async throws {
        let home = try TemporaryStore()
        let store = try Self.open(home, Self.first)
        try await Self.save(store)
        var other = ContainerSettings(key: Sample.otherContainer, topics: ["t"])
        other.userTokens = UserTokenSettings(sharedSecret: "another secret of at least 32 bytes.")
        try await store.save(other, at: Sample.moment(0))
        try await store.write { commit in
            try commit.db.execute(
                sql: """
                    UPDATE container SET userTokens = (
                        SELECT userTokens FROM container ORDER BY id LIMIT 1)
                    """)
        }
        await #expect(throws: StorageError.self) {
            try await store.container(Sample.otherContainer)
        }
        await store.close()
    }

    @Test(arguments: [
        (String(repeating: "0f", count: 32), true),
        ("\n" + String(repeating: "A", count: 43), true),
        (String(repeating: "0f", count: 31), false), ("", false), ("hunter2", false),
    ])
    func `a key is 32 bytes in hexadecimal or base64`(text: String, isKey: Bool) {
        #expect((SecretKey(text: text) != nil) == isKey)
    }

    @Test func `a description of a key does not reveal it`() {
        let text = String(repeating: "ab", count: 32)
        let key = SecretKey(text: text)
        var dumped = ""
        dump(key, to: &dumped)
        for shown in ["\(String(describing: key))", "\(String(reflecting: key))", dumped] {
            #expect(!shown.contains("abab"))
            #expect(!shown.contains("171"))
        }
        #expect(key?.text == text)
    }
}
