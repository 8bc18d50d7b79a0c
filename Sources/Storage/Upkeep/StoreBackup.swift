import Foundation
import GRDB

/// Copies a database file, also while a relay writes to it.
///
/// The copy is of one moment, whole, and smaller than the file: free pages are left out. It is
/// written under another name first, synced, opened and checked, and only then gets its name, so
/// that a file of that name is always good.
struct StoreBackup {
    let path: String
    let target: String

    func run() throws -> StoreReport {
        let files = FileManager.default
        guard !files.fileExists(atPath: target) else {
            throw StorageError.inaccessible(
                path: target, reason: "it exists already; a backup replaces nothing")
        }
        let partial = target + ".partial"
        try? files.removeItem(atPath: partial)
        // The copy holds the same secrets, and SQLite writes into an empty file as it is.
        guard
            files.createFile(
                atPath: partial, contents: nil, attributes: [.posixPermissions: 0o600])
        else {
            throw StorageError.inaccessible(path: partial, reason: "it cannot be created")
        }
        do {
            try copy(to: partial)
            let report = try RelayStore.check(path: partial)
            guard report.problems.isEmpty else {
                throw StorageError.damaged(
                    path: path,
                    reason: "its copy is not sound: \(report.problems.joined(separator: "; "))")
            }
            try files.moveItem(atPath: partial, toPath: target)
            Self.sync((target as NSString).deletingLastPathComponent)
            return report
        } catch {
            for ending in ["", "-wal", "-shm", "-journal"] {
                try? files.removeItem(atPath: partial + ending)
            }
            throw error
        }
    }

    private func copy(to partial: String) throws {
        let connections = StoreConnections(path: path, settings: StoreSettings())
        try connections.inspectOutsideTransaction { db in
            _ = try StoreSchema.version(db, path: path)
            try db.execute(sql: "VACUUM INTO ?", arguments: [partial])
        }
        guard Self.sync(partial) else {
            throw StorageError.inaccessible(path: partial, reason: "it cannot be synced")
        }
    }

    /// Has the kernel write a file, or a directory's names, to the disk.
    @discardableResult private static func sync(_ path: String) -> Bool {
        let descriptor = open(path.isEmpty ? "." : path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return fsync(descriptor) == 0
    }
}

extension RelayStore {
    /// Copies the file at `path` to `target`, which must not exist, and checks the copy.
    ///
    /// A relay may be running on it; its write-ahead log cannot shrink meanwhile.
    ///
    /// - Throws: ``StorageError``; then there is no file `target`.
    package static func backUp(path: String, to target: String) throws -> StoreReport {
        do {
            return try StoreBackup(path: path, target: target).run()
        } catch {
            throw StorageError.opening(path, failed: error)
        }
    }
}
