import FoundationEssentials
import Glibc
import Storage

/// A small JSON file that only its owner may read.
enum PrivateFile {
    /// The reason why a file cannot be written or is not accepted.
    struct Fault: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    /// Writes the file atomically.
    ///
    /// - Throws: ``Fault`` if it cannot be written.
    static func write(_ value: some Encodable, to file: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let draft = file.appendingPathExtension("new")
        try? FileManager.default.removeItem(at: draft)
        guard
            FileManager.default.createFile(
                atPath: draft.path, contents: try encoder.encode(value),
                attributes: [.posixPermissions: 0o600])
        else { throw Fault("\(draft.path) cannot be written") }
        guard unsafe rename(draft.path, file.path) == 0 else {
            throw Fault("\(file.path) cannot be written: \(POSIXError.last.systemReason)")
        }
    }

    /// Reads the file.
    ///
    /// - Throws: `CocoaError.fileReadNoSuchFile` if it does not exist, and another error if it has
    ///   other contents or other users may access it.
    static func read<Value: Decodable>(_ type: Value.Type, from file: URL) throws -> Value {
        let data = try Data(contentsOf: file)
        var status = stat()
        guard unsafe stat(file.path, &status) == 0, status.st_uid == geteuid(),
            status.st_mode & 0o077 == 0
        else { throw Fault("\(file.path) must be readable by this user only (chmod 600)") }
        return try JSONDecoder().decode(type, from: data)
    }
}
