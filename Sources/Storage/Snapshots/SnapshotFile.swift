import Crypto
import FoundationEssentials
import Glibc

/// A file of sections, each with its checksum, that appears completely or not at all.
///
/// ```
/// | "BlfySnap" | version 4 | { length 8 | section | SHA-256 of it 32 } … | length of all ones 8 |
/// ```
/// The file is written under another name, synced and renamed, and then the directory is synced.
/// Only the owner may read the file, because it holds device tokens and the seeds of hashes.
package enum SnapshotFile {
    private static let magic = Array("BlfySnap".utf8)
    private static let version: UInt32 = 1
    private static let end = UInt64.max
    /// The number of bytes written at a time.
    private static let portion = 4 << 20

    /// Writes the file at `path`, blocking.
    ///
    /// `onPortion` is called after each portion and each step, for tests of crashes.
    ///
    /// - Throws: ``SnapshotFailure`` if the file could not be written durably. Then there is no new
    ///   file.
    package static func write(
        _ sections: [[UInt8]], to path: String, onPortion: () -> Void = {}
    ) throws {
        let draft = path + ".draft"
        let descriptor = Glibc.open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SnapshotFailure("cannot open \(draft)", errno) }
        do {
            try write(magic + bytes(version), to: descriptor, onPortion)
            for section in sections {
                try write(bytes(UInt64(section.count)), to: descriptor, onPortion)
                try write(section, to: descriptor, onPortion)
                try write(Array(SHA256.hash(data: section)), to: descriptor, onPortion)
            }
            try write(bytes(end), to: descriptor, onPortion)
            guard fsync(descriptor) == 0 else { throw SnapshotFailure("cannot sync", errno) }
            onPortion()
            Glibc.close(descriptor)
        } catch {
            Glibc.close(descriptor)
            unlink(draft)
            throw error
        }
        guard rename(draft, path) == 0 else { throw SnapshotFailure("cannot rename", errno) }
        onPortion()
        try syncDirectory(of: path)
    }

    private static func write(
        _ content: [UInt8], to descriptor: Int32, _ onPortion: () -> Void
    ) throws {
        var start = 0
        while start < content.count {
            let count = min(portion, content.count - start)
            let written = content.withUnsafeBytes { raw in
                Glibc.write(descriptor, raw.baseAddress.map { $0 + start }, count)
            }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw SnapshotFailure("cannot write", errno) }
            start += written
            onPortion()
        }
    }

    private static func bytes(_ word: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: word.littleEndian) { Array($0) }
    }

    private static func syncDirectory(of path: String) throws {
        let directory = URL(filePath: path).deletingLastPathComponent().path
        let descriptor = Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SnapshotFailure("cannot open \(directory)", errno) }
        defer { Glibc.close(descriptor) }
        guard fsync(descriptor) == 0 else { throw SnapshotFailure("cannot sync", errno) }
    }

    /// Reads the sections of a file one by one, blocking, with one section in memory at a time.
    ///
    /// Not safe for concurrent use.
    package final class Reading {
        private let descriptor: Int32
        private let size: Int
        private var offset = 0

        /// Opens the file at `path`, or returns `nil` if there is none.
        ///
        /// - Throws: ``SnapshotFailure`` if the file cannot be read, or has another format or
        ///   version.
        package init?(_ path: String) throws {
            descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else {
                if errno == ENOENT { return nil }
                throw SnapshotFailure("cannot open it", errno)
            }
            var status = stat()
            size = fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
            let start = try take(SnapshotFile.magic.count + 4)
            guard Array(start.prefix(SnapshotFile.magic.count)) == SnapshotFile.magic else {
                throw SnapshotFailure("it is not a snapshot")
            }
            guard Array(start.suffix(4)) == SnapshotFile.bytes(SnapshotFile.version) else {
                throw SnapshotFailure("it has another version")
            }
        }

        deinit {
            Glibc.close(descriptor)
        }

        /// Returns the next section, or `nil` at the end.
        ///
        /// - Throws: ``SnapshotFailure`` if the section is cut off or its checksum does not match.
        package func next() throws -> [UInt8]? {
            let length = try take(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            if length == SnapshotFile.end {
                guard offset == size else { throw SnapshotFailure("there is data after its end") }
                return nil
            }
            guard let count = Int(exactly: length) else { throw SnapshotFailure("it is cut off") }
            let section = try take(count)
            guard try take(32).elementsEqual(SHA256.hash(data: section)) else {
                throw SnapshotFailure("a checksum does not match")
            }
            return section
        }

        private func take(_ count: Int) throws -> [UInt8] {
            guard count >= 0, count <= size - offset else { throw SnapshotFailure("it is cut off") }
            defer { offset += count }
            let descriptor = descriptor
            return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                while filled < count {
                    let got = Glibc.read(
                        descriptor, buffer.baseAddress.map { $0 + filled }, count - filled)
                    if got < 0, errno == EINTR { continue }
                    guard got > 0 else { throw SnapshotFailure("cannot read it", errno) }
                    filled += got
                }
            }
        }
    }

    /// Removes the files whose paths begin with `stem`, except `kept`: snapshots of a store, and
    /// drafts.
    package static func removeAll(stem: String, except kept: String?) {
        let url = URL(filePath: stem)
        let directory = url.deletingLastPathComponent()
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
        for name in names where name.hasPrefix(url.lastPathComponent) {
            let path = directory.appending(path: name).path
            if path != kept { unlink(path) }
        }
    }

    /// Returns the size of the file at `path` in bytes, or 0 if there is none.
    package static func size(of path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}

/// The reason why a snapshot could not be written or read.
package struct SnapshotFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reason, as a clause.
    package let description: String

    /// Creates a failure from a reason and, if given, a system error code.
    package init(_ reason: String, _ code: Int32? = nil) {
        let detail = code.map { ": " + String(cString: strerror($0)) } ?? ""
        description = reason + detail
    }
}
