import ArgumentParser
import RelayServer
import Storage
import StoragePostgreSQL
import StorageSQL
import StorageSQLite

/// A store as an operator names it: a file, or a database on a server.
enum NamedStore: CustomStringConvertible {
    case file(String)
    case server(PostgresPlace)

    /// Parses a path, or the URL of a database with a schema.
    ///
    /// - Throws: ``CommandFailure`` if the URL is invalid, which a retry would not change.
    init(_ text: String, schema: String? = nil) throws {
        guard Self.isServer(text) else {
            self = .file(text)
            return
        }
        do {
            self = .server(
                try PostgresPlace(url: text, schema: schema ?? PostgresPlace.usualSchema))
        } catch {
            guard case .inaccessible(let setting, let reason) = error else { throw error }
            // The error must name the option of this command, not a setting that it does not use.
            let path = setting == "storage.url" ? "the URL of the database" : "the schema"
            throw CommandFailure(.configuration, "\(path) cannot be used: \(reason)")
        }
    }

    /// Returns whether a text names a database on a server.
    ///
    /// Such a text may contain a secret.
    static func isServer(_ text: String) -> Bool { PostgresPlace.isMeant(by: text) }

    /// Returns a text for messages about a store whose name was not validated yet.
    static func shown(_ text: String) -> String { isServer(text) ? "the database" : text }

    /// Refuses an empty name, such as that of a shell's variable that is not set.
    ///
    /// SQLite would open a temporary file for it.
    static func requireName(_ text: String) throws {
        guard text.isEmpty else { return }
        throw ValidationError("the name of the store is empty: name a file, or a database's URL")
    }

    /// Refuses a database on a server, for which PostgreSQL's own tools are used.
    static func requireFile(_ text: String, _ deed: String) throws {
        try requireName(text)
        guard isServer(text) else { return }
        throw ValidationError(
            "a store on PostgreSQL is \(deed) by PostgreSQL's own means, such as pg_basebackup "
                + "with an archive of its log; this command is only for files")
    }

    /// Refuses a schema that is given for a file by `option`, because it was meant for another
    /// store.
    static func check(_ schema: String?, of text: String, called option: String) throws {
        try requireName(text)
        guard schema != nil, !isServer(text) else { return }
        throw ValidationError("\(option) is for a database; \(text) is a file, which has no schema")
    }

    var description: String {
        switch self {
        case .file(let path): path
        case .server(let place): "\(place)"
        }
    }

    /// Opens the store.
    func open(_ settings: StoreSettings) throws -> RelayStore {
        switch self {
        case .file(let path): try RelayStore.open(path: path, settings: settings)
        case .server(let place):
            try RelayStore.open(
                place,
                as: StoreClaimant(
                    name: World.real.machine, identity: World.real.randomBytes(16)),
                settings: settings)
        }
    }

    /// Updates the store's schema; returns the names of the applied steps.
    func migrate() throws -> [String] {
        switch self {
        case .file(let path): try RelayStore.migrate(path: path)
        case .server(let place): try RelayStore.migrate(place)
        }
    }

    /// Checks the store, even while a relay runs.
    func check() throws -> StoreReport {
        switch self {
        case .file(let path): try RelayStore.check(path: path)
        case .server(let place): try RelayStore.check(place)
        }
    }
}
