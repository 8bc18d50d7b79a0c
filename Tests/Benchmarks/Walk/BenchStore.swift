import Foundation
import RelayModel
import RelayServer
import Storage
import StoragePostgreSQL
import StorageSQL
import StorageSQLite

/// Where a benchmark keeps its store: in a file, or in a schema of its own of a database.
struct BenchStore: Sendable {
    let path: String
    /// The database, as `postgresql://…`; `nil` for the file.
    let url: String?
    private let schema: String

    init(path: String, url: String?) {
        self.path = path
        self.url = url
        schema = "bench_" + UUID().uuidString.lowercased().replacing("-", with: "")
    }

    /// Opens it, and makes it if it is not there.
    func open(_ settings: StoreSettings = StoreSettings()) throws -> RelayStore {
        guard let url else { return try RelayStore.open(path: path, settings: settings) }
        return try RelayStore.open(
            try PostgresPlace(url: url, schema: schema),
            as: StoreClaimant(name: "bench", identity: World.real.randomBytes(16)),
            settings: settings)
    }

    /// The settings of a relay that has it.
    var settings: [String] {
        guard let url else { return ["--storage-path", path] }
        return ["--storage-url", url, "--storage-schema", schema]
    }

    /// How an option names the database.
    static let help = """
        A database to keep the store in, as postgresql://…, instead of a file; the schemas that \
        are made in it stay.
        """
}
