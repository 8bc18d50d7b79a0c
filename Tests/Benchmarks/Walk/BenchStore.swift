import Foundation
import RelayModel
import RelayServer
import Storage
import StoragePostgreSQL
import StorageSQL
import StorageSQLite

/// The place of a benchmark's store: a file, or a schema of its own in a database.
struct BenchStore: Sendable {
    let path: String
    /// The database as `postgresql://…`; `nil` for a file.
    let url: String?
    private let schema: String

    init(path: String, url: String?) {
        self.path = path
        self.url = url
        schema = "bench_" + UUID().uuidString.lowercased().replacing("-", with: "")
    }

    /// Opens the store, and creates it if it does not exist.
    func open(_ settings: StoreSettings = StoreSettings()) throws -> RelayStore {
        guard let url else { return try RelayStore.open(path: path, settings: settings) }
        return try RelayStore.open(
            try PostgresPlace(url: url, schema: schema),
            as: StoreClaimant(name: "bench", identity: World.real.randomBytes(16)),
            settings: settings)
    }

    /// The command-line settings of a relay with this store.
    var settings: [String] {
        guard let url else { return ["--storage-path", path] }
        return ["--storage-url", url, "--storage-schema", schema]
    }

    /// The help text of the option that names the database.
    static let help = """
        A database to keep the store in, as postgresql://…, instead of a file; the schemas that \
        are made in it stay.
        """
}
