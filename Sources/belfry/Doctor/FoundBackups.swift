import FoundationEssentials
import LogShipping
import RelayModel
import RelayServer
import Storage

/// Finds the backups at a place that an operator names.
enum FoundBackups {
    /// Looks at a folder, a file, or the place of continuous backups.
    ///
    /// Continuous backups are judged by the last moment that a restore reaches, not by the date of
    /// a file.
    ///
    /// - Throws: ``CommandFailure`` if the text names no place, its settings cannot be used, or a
    ///   folder cannot be read.
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

    /// The endings of files that belong to a store or remain of an interrupted backup.
    private static let noBackups = ["-wal", "-shm", "-journal", ".partial"]

    /// Returns the newest file at the place that can be a backup; an empty file is what a full disk
    /// leaves, and does not count.
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

    /// Returns the whole second of a date.
    ///
    /// Some file systems keep dates that 64 bits do not hold; then it is the first or last moment.
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
