import FoundationEssentials
import Glibc
import Storage

/// A folder, for example on another, mounted disk.
///
/// The folder itself is never created. If it is missing, its disk is perhaps not mounted, and the
/// backups would land on the same disk as the store.
package struct FolderDestination: BackupDestination {
    private let path: String
    private let writer: FileWriter
    private let mostNames: Int
    private let contents: @Sendable (String) throws -> [String]

    package init(_ path: String) {
        self.init(path, writer: FileWriter())
    }

    /// - Parameters:
    ///   - path: The path of the folder.
    ///   - writer: Writes to files.
    ///   - mostNames: The maximum number of names in a list.
    ///   - contents: Lists a folder. Tests replace it to simulate a failing disk.
    init(
        _ path: String, writer: FileWriter, mostNames: Int = maximumNames,
        contents: @escaping @Sendable (String) throws -> [String] = {
            try FileManager.default.contentsOfDirectory(atPath: $0)
        }
    ) {
        self.path = path
        self.writer = writer
        self.mostNames = mostNames
        self.contents = contents
    }

    package var place: String { "file://\(path)" }

    package func put(_ name: String, _ bytes: [UInt8]) async throws(DestinationFailure) {
        try await done { try write(name, bytes) }
    }

    package func get(
        _ name: String, atMost limit: Int
    ) async throws(DestinationFailure) -> [UInt8]? {
        try await done { try read(name, atMost: limit) }
    }

    package func names(below prefix: String) async throws(DestinationFailure) -> [String] {
        try await done {
            try checkFolder()
            var names: [String] = []
            try list("", below: prefix, into: &names)
            return names.filter { $0.hasPrefix(prefix) }
        }
    }

    /// Adds the names in a folder and its subfolders to `names`.
    ///
    /// Names that are not listed count as missing, and files that depend on them are then removed.
    /// So an unreadable folder of a chain is a failure and does not count as empty. Unreadable
    /// foreign folders, such as `lost+found`, are ignored.
    private func list(
        _ folder: String, below prefix: String, into names: inout [String]
    ) throws(DestinationFailure) {
        let within = folder.isEmpty ? "" : "\(folder)/"
        let entries = try found(folder) { try contents("\(path)/\(within)") } ?? []
        for entry in entries where !entry.hasSuffix(Self.partial) {
            let name = within + entry
            // A chain may have thousands of segments, so only entries that can match the prefix are
            // examined.
            guard name.hasPrefix(prefix) || prefix.hasPrefix("\(name)/") else { continue }
            let kind = try found(name) {
                let attributes = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
                return attributes[.type] as? FileAttributeType
            }
            switch kind {
            case FileAttributeType.typeRegular?:
                guard names.count < mostNames else {
                    throw DestinationFailure(
                        .refused, "\(place): it has more than \(mostNames) files")
                }
                names.append(name)
            case FileAttributeType.typeDirectory?: try list(name, below: prefix, into: &names)
            default: continue
            }
        }
    }

    /// Returns the result of `body`; `nil` if the name was removed in the meantime, or if it cannot
    /// be read and does not belong to a chain.
    private func found<Value>(
        _ name: String, _ body: () throws -> Value?
    ) throws(DestinationFailure) -> Value? {
        do {
            return try body()
        } catch {
            if error.isMissingFile { return nil }
            let chain = name.prefix { $0 != "/" }
            guard name.isEmpty || BackupName.isChain(chain) else { return nil }
            let isForbidden = (error as? CocoaError)?.code == .fileReadNoPermission
            throw DestinationFailure(
                isForbidden ? .refused : .away,
                "\(place): \(name.isEmpty ? "it" : name) cannot be listed: "
                    + error.systemReason)
        }
    }

    package func remove(_ name: String) async throws(DestinationFailure) {
        try await done {
            guard unsafe unlink("\(path)/\(name)") == 0 || errno == ENOENT else {
                throw failure("\(name) cannot be removed")
            }
            // Empty folders are removed. If one of a chain is, so are its siblings that hold only
            // files a crash left behind.
            var folder = Self.parent(of: name)
            while !folder.isEmpty, Self.removeForsaken("\(path)/\(folder)") {
                folder = Self.parent(of: folder)
                if !folder.isEmpty { Self.removeAllForsaken(in: "\(path)/\(folder)") }
            }
        }
    }

    /// Removes a folder that is empty or holds only half-written files that a crash left; returns
    /// whether it did.
    private static func removeForsaken(_ folder: String) -> Bool {
        if unsafe rmdir(folder) == 0 { return true }
        guard errno == ENOTEMPTY || errno == EEXIST, isForsaken(folder) else { return false }
        return (try? FileManager.default.removeItem(atPath: folder)) != nil
    }

    private static func removeAllForsaken(in folder: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names { _ = removeForsaken("\(folder)/\(name)") }
    }

    private static func isForsaken(_ folder: String) -> Bool {
        let files = FileManager.default
        // A link may lead to files that are not part of the backup.
        let attributes = try? files.attributesOfItem(atPath: folder)
        guard attributes?[.type] as? FileAttributeType == .typeDirectory,
            let names = try? files.contentsOfDirectory(atPath: folder)
        else { return false }
        return names.allSatisfy { $0.hasSuffix(partial) || isForsaken("\(folder)/\($0)") }
    }

    package func close() async {}

    private static let partial = ".partial"

    /// Returns the part before the last slash; empty without one.
    private static func parent(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    }

    private func done<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws(DestinationFailure) -> Value {
        do {
            return try await blocking(body)
        } catch let failure as DestinationFailure {
            throw failure
        } catch {
            throw DestinationFailure(.away, "\(place): \(error.systemReason)")
        }
    }

    /// Returns a failure that describes the last system call's error and what to do about it.
    private func failure(_ sentence: String) -> DestinationFailure {
        let code = errno
        let isForbidden = [EACCES, EPERM, EROFS].contains(code)
        return DestinationFailure(
            isForbidden ? .refused : .away,
            "\(place): \(sentence): \(Self.words(of: code))")
    }

    private static func words(of code: Int32) -> String {
        switch code {
        case ENOSPC, EDQUOT:
            "there is no room left; make room on its disk, or keep fewer copies (backup.keep)"
        case EACCES, EPERM: "it is not permitted; let the user that runs the relay write there"
        case EROFS: "its disk is mounted for reading only"
        case EIO: "its disk does not work (input/output error)"
        default: unsafe String(cString: strerror(code))
        }
    }

    private func checkFolder() throws(DestinationFailure) {
        guard FileManager.default.isFolder(path) else {
            throw DestinationFailure(
                .away,
                "\(place): there is no such folder; make it, or mount the disk that it is on")
        }
    }

    private func read(_ name: String, atMost limit: Int) throws(DestinationFailure) -> [UInt8]? {
        try checkFolder()
        let file = "\(path)/\(name)"
        let opened = unsafe open(file, O_RDONLY | O_CLOEXEC)
        guard opened >= 0 else {
            if errno == ENOENT { return nil }
            throw failure("\(name) cannot be read")
        }
        defer { Glibc.close(opened) }
        var found = stat()
        guard unsafe fstat(opened, &found) == 0 else { throw failure("\(name) cannot be read") }
        guard found.st_size <= limit else {
            throw DestinationFailure(.refused, "\(place): \(name) is larger than \(limit) bytes")
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(found.st_size))
        var portion = [UInt8](repeating: 0, count: min(1 << 20, max(1, Int(found.st_size))))
        // Bytes that were appended after `fstat` are ignored. If the file was truncated, the loop
        // ends early.
        while bytes.count < found.st_size {
            let read = unsafe pread(opened, &portion, portion.count, off_t(bytes.count))
            if read < 0, errno == EINTR { continue }
            guard read >= 0 else { throw failure("\(name) cannot be read") }
            if read == 0 { break }
            bytes += portion.prefix(min(read, Int(found.st_size) - bytes.count))
        }
        return bytes
    }

    private func write(_ name: String, _ bytes: [UInt8]) throws(DestinationFailure) {
        try checkFolder()
        let file = "\(path)/\(name)"
        let folder = Self.parent(of: file)
        try makeFolder(folder)
        let partial = file + Self.partial
        // A leftover of a crash may be a hard link to the finished file, and anyone who can write
        // to this folder could place a link to one of our files. Removing the name and creating it
        // anew writes to neither.
        unsafe unlink(partial)
        let opened = unsafe open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard opened >= 0 else { throw failure("\(name) cannot be opened") }
        defer { Glibc.close(opened) }
        defer { unsafe unlink(partial) }
        guard writer.write(bytes, to: opened) else { throw failure("\(name) cannot be written") }
        guard fsync(opened) == 0 else { throw failure("\(name) cannot be synced") }
        // Unlike a rename, a link does not replace an existing file.
        if unsafe link(partial, file) != 0 {
            guard errno == EEXIST else { throw failure("\(name) cannot be given its final name") }
            guard try read(name, atMost: max(bytes.count, maximumShipped)) == bytes else {
                throw DestinationFailure(
                    .taken, "\(place): \(name) exists already, with other contents")
            }
        }
        try syncFolders(from: folder)
    }

    /// Creates a folder below the destination, including its parents.
    private func makeFolder(_ folder: String) throws(DestinationFailure) {
        guard folder != path, unsafe mkdir(folder, 0o700) != 0, errno != EEXIST else { return }
        guard errno == ENOENT else { throw failure("\(folder) cannot be made") }
        try makeFolder(Self.parent(of: folder))
        guard unsafe mkdir(folder, 0o700) == 0 || errno == EEXIST else {
            throw failure("\(folder) cannot be made")
        }
    }

    private func syncFolders(from folder: String) throws(DestinationFailure) {
        var folder = folder
        while folder.hasPrefix(path) {
            let opened = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard opened >= 0 else { throw failure("\(folder) cannot be opened") }
            defer { Glibc.close(opened) }
            guard fsync(opened) == 0 else { throw failure("\(folder) cannot be synced") }
            folder = Self.parent(of: folder)
        }
    }
}
