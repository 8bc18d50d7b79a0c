import FoundationEssentials
import LogShipping
import RelayModel
import RelayServer
import Storage

/// What lies where an operator says that backups are.
enum FoundBackups {
    /// Looks at a folder, a file, or the place of continuous backups.
    ///
    /// Continuous backups are judged by what can be restored of them, not by the date of a file.
    ///
    /// - Throws: ``CommandFailure`` if the place is none, its settings cannot be used, or a folder
    ///   cannot be read.
    static func look(at backups: String, config: String?) async throws -> Checkup.Backup {
        if backups.hasPrefix("s3://") {
            return await reach(of: try await BackupAccess.destination(backups, config: config))
        }
        var path = backups
        if backups.hasPrefix("file://") {
            guard case .folder(let folder)? = BackupPlace(backups) else {
                throw CommandFailure(
                    .input, "--backups: \"\(backups)\" must be \(BackupPlace.rule)")
            }
            path = folder
        }
        guard FileManager.default.isFolder(path), Catalogue.isOfDestination(try contents(of: path))
        else {
            return try newest(at: path)
        }
        let folder = URL(filePath: path).standardizedFileURL.path
        return await reach(of: FolderDestination(folder))
    }

    private static func reach(of destination: any BackupDestination) async -> Checkup.Backup {
        let found: Checkup.Backup
        do throws(DestinationFailure) {
            found = .shipped(
                try await BackupReading(destination).reach(), place: destination.place)
        } catch {
            found = .unread(place: destination.place, reason: error.description)
        }
        await destination.close()
        return found
    }

    /// What lies beside a store, or is left of a backup that was cut off.
    private static let noBackups = ["-wal", "-shm", "-journal", ".partial"]

    /// The newest file at the place that can be a backup: an empty one is what a full disk leaves.
    static func newest(at backups: String) throws -> Checkup.Backup {
        let manager = FileManager.default
        let isFolder = manager.isFolder(backups)
        let names = try isFolder ? contents(of: backups) : []
        let paths = isFolder ? names.map { "\(backups)/\($0)" } : [backups]
        let files = paths.compactMap { path -> (Date, String)? in
            guard !noBackups.contains(where: { path.hasSuffix($0) }),
                let attributes = try? manager.attributesOfItem(atPath: path),
                attributes[.type] as? FileAttributeType == .typeRegular,
                manager.bytes(at: path) ?? 0 > 0,
                let date = attributes[.modificationDate] as? Date
            else { return nil }
            return (date, path)
        }
        guard let (date, path) = files.max(by: { $0.0 < $1.0 }) else {
            return .missing(path: backups)
        }
        return .made(moment(date), path: path)
    }

    /// The whole second of a date: of one beyond what 64 bits hold, as some file systems keep, the
    /// first or last moment.
    static func moment(_ date: Date) -> Timestamp {
        let seconds = date.timeIntervalSince1970.rounded(.down)
        return Int64(exactly: seconds).map { Timestamp(seconds: $0) }
            ?? (seconds < 0 ? .earliest : .latest)
    }

    private static func contents(of folder: String) throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder)
        } catch {
            throw CommandFailure(
                .input,
                "--backups: the folder \(folder) cannot be read: \(error.systemReason)")
        }
    }
}
