import ArgumentParser
import RelayServer
import Storage
import StoragePostgreSQL
import StorageSQL
import StorageSQLite

/// A store as an operator names it: a file, or a database of a server.
enum NamedStore: CustomStringConvertible {
    case file(String)
    case server(PostgresPlace)

    /// Reads a path, or what names a database, with a schema beside it.
    ///
    /// - Throws: ``CommandFailure`` if it names none: to try again is of no use.
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
            // A command is not told of settings that it does not use.
            let path = setting == "storage.url" ? "the URL of the database" : "the schema"
            throw CommandFailure(.configuration, "\(path) cannot be used: \(reason)")
        }
    }

    /// Whether a text names a database of a server; it may hold what must not be repeated.
    static func isServer(_ text: String) -> Bool { PostgresPlace.isMeant(by: text) }

    /// What a text names, for a sentence, before it is known to be right.
    static func shown(_ text: String) -> String { isServer(text) ? "the database" : text }

    /// Refuses a database of a server, which PostgreSQL copies by its own means.
    static func requireFile(_ text: String, _ deed: String) throws {
        guard isServer(text) else { return }
        throw ValidationError(
            "a store on PostgreSQL is \(deed) by PostgreSQL's own means, as pg_basebackup with an "
                + "archive of its log; this command is for files")
    }

    /// Refuses a schema that is named beside a file, by the option that is called so: it was meant
    /// for another store.
    static func check(_ schema: String?, of text: String, called option: String) throws {
        guard schema != nil, !isServer(text) else { return }
        throw ValidationError("\(option) is of a database; \(text) is a file, which has none")
    }

    var description: String {
        switch self {
        case .file(let path): path
        case .server(let place): "\(place)"
        }
    }

    /// Opens it.
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

    /// Brings its schema up to date; returns the names of the steps applied.
    func migrate() throws -> [String] {
        switch self {
        case .file(let path): try RelayStore.migrate(path: path)
        case .server(let place): try RelayStore.migrate(place)
        }
    }

    /// Checks it, also while a relay runs.
    func check() throws -> StoreReport {
        switch self {
        case .file(let path): try RelayStore.check(path: path)
        case .server(let place): try RelayStore.check(place)
        }
    }
}
