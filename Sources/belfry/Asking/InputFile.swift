import FoundationEssentials
import Glibc
import RelayModel
import Storage

/// A file that a command writes.
enum OutputFile {
    /// Returns why a file cannot be written.
    static func failure(_ error: any Error, _ path: String) -> CommandFailure {
        CommandFailure(
            .input, "the file \(path) cannot be written: \(error.systemReason)")
    }
}

/// A file that a command reads; `-` means the standard input.
struct InputFile {
    /// The maximum number of bytes to read.
    ///
    /// A file of a million changes is smaller. An endless file such as `/dev/zero` must not exhaust
    /// the memory.
    static let mostBytes = 256 * 1024 * 1024

    private let path: String
    private let most: Int

    init(_ path: String, atMost most: Int = Self.mostBytes) {
        self.path = path
        self.most = most
    }

    /// Returns the text of the file.
    ///
    /// Invalid UTF-8 is refused, because replacing it would change the text silently.
    func text() throws -> String {
        let bytes = try bytes()
        if let text = String(utf8: bytes) { return text }
        let line = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
            .firstIndex { String(utf8: $0) == nil }
        throw CommandFailure(
            .input, "the file \(path) is not UTF-8 text: see line \((line ?? 0) + 1)")
    }

    /// Returns the contents of the file, without a byte order mark.
    func bytes() throws -> [UInt8] {
        let bytes = try written()
        if bytes.starts(with: Self.mark) { return Array(bytes.dropFirst(3)) }
        guard !Self.isUTF16(bytes) else { throw Self.utf16(path) }
        return bytes
    }

    /// The byte order mark of UTF-8, which some editors write.
    static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Returns whether a text begins with a byte order mark of UTF-16.
    static func isUTF16(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF])
    }

    static func utf16(_ path: String) -> CommandFailure {
        CommandFailure(.input, "the file \(path) is UTF-16: save it as UTF-8")
    }

    private func written() throws -> [UInt8] {
        do {
            guard path == "-" else {
                return try WholeFile.bytes(at: path, atMost: most)
            }
            return try StandardStreams.readAll(STDIN_FILENO, atMost: most)
        } catch let error as POSIXError where error.code == .EFBIG {
            throw CommandFailure(.input, "the file \(path) has more than \(most) bytes")
        } catch {
            throw Self.failure(error, path)
        }
    }

    /// Returns why a file cannot be read.
    static func failure(_ error: any Error, _ path: String) -> CommandFailure {
        if error.isMissingFile {
            // Probably an unset shell variable.
            guard !path.isEmpty else {
                return CommandFailure(.input, "a file name is expected, but it is empty")
            }
            let hint = path.hasPrefix("~") ? "; a shell reads ~ only where a word begins" : ""
            return CommandFailure(.input, "there is no file \(path)\(hint)")
        }
        let reason = FileManager.default.isFolder(path) ? "it is a folder" : error.systemReason
        return CommandFailure(.input, "the file \(path) cannot be read: \(reason)")
    }
}
