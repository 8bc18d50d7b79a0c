import Storage
import StorageSQL

extension StoreReport {
    /// Checks the file at `path`; see ``RelayStore/check(path:)``.
    static func check(path: String) throws -> StoreReport {
        do {
            // The witness is read before the file, because a relay may be writing meanwhile.
            let path = try StorePlace.resolve(path)
            let known = try StoreWitness.record(of: path)
            let connections = StoreConnections(path: path, settings: StoreSettings())
            return try connections.inspect { db in
                var report = try StoreReport(of: db, path: path)
                if let problem = try connections.problem(of: db, known) {
                    report.problems.append("\(problem)")
                }
                return report
            }
        } catch {
            throw StorageError.opening(path, failed: error)
        }
    }

    private init(of db: EmbeddedConnection, path: String) throws {
        let schemaVersion = try StoreSchema.version(db, path: path)
        guard schemaVersion > 0 else { throw StoreSchema.empty(path) }
        guard schemaVersion == StoreSchema.newestVersion else {
            throw StorageError.inaccessible(
                path: path,
                reason: "its schema has version \(schemaVersion), and this Belfry can check only "
                    + "version \(StoreSchema.newestVersion): run belfry migrate, or that version")
        }
        var problems = try Self.problems(
            of: path,
            checked: try String.fetchAll(db.database, sql: "PRAGMA integrity_check(100)"))
        let references = try Row.fetchAll(db.database, sql: "PRAGMA foreign_key_check")
        problems += references.prefix(100).map { row in
            "\(row[0] as String? ?? "?"): a row refers to nothing in \(row[2] as String? ?? "?")"
        }
        try self.init(
            rowsOf: db.database, schemaVersion: schemaVersion, problems: problems)
    }

    /// Returns the problems that a check of the pages found.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the disk could not read a page, so
    ///   that nothing is known about it.
    static func problems(
        of path: String, checked lines: [String]
    ) throws(StorageError) -> [String] {
        if let error = StorageError.unread(path, among: lines) { throw error }
        return lines.filter { $0 != "ok" }
    }
}
