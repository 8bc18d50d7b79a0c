package import FoundationEssentials
import Glibc

extension Error {
    /// The reason of a file error in the system's words.
    ///
    /// For other errors, their own description.
    package var systemReason: String {
        switch self {
        case let error as POSIXError: String(cString: unsafe strerror(error.code.rawValue))
        case let error as CocoaError: reason(of: error)
        default: "\(self)"
        }
    }

    /// Whether the error says that the file does not exist.
    package var isMissingFile: Bool {
        switch self {
        case let error as POSIXError: error.code == .ENOENT
        case let error as CocoaError:
            error.code == .fileReadNoSuchFile || error.code == .fileNoSuchFile
        default: false
        }
    }
}

/// Returns the reason of a file error in words.
///
/// FoundationEssentials keeps the system's error, but has no sentences of its own.
private func reason(of error: CocoaError) -> String {
    if let cause = error.userInfo["NSUnderlyingError"] as? POSIXError { return cause.systemReason }
    return switch error.code {
    case .fileNoSuchFile, .fileReadNoSuchFile: "there is no such file"
    case .fileReadNoPermission, .fileWriteNoPermission: "it is not permitted"
    case .fileWriteFileExists: "it exists already"
    case .fileWriteOutOfSpace: "the disk is full"
    case .fileReadInapplicableStringEncoding: "it is not UTF-8"
    case .fileReadInvalidFileName: "it is not a valid file name"
    default: "error \(error.code.rawValue) of the file system"
    }
}

extension FileManager {
    /// Whether there is a folder at `path`.
    package func isFolder(_ path: String) -> Bool {
        var isFolder = false
        return fileExists(atPath: path, isDirectory: &isFolder) && isFolder
    }

    /// Whether there is a regular file at `path`, which can be read repeatedly, unlike a pipe.
    package func isPlainFile(_ path: String) -> Bool {
        var found = stat()
        return stat(path, &found) == 0 && found.st_mode & S_IFMT == S_IFREG
    }

    /// Returns the size of the file at `path`, or `nil` if there is no accessible file.
    ///
    /// This does not use the file's attributes, because their numbers have another type in a
    /// process that has not loaded all of Foundation.
    package func bytes(at path: String) -> Int? {
        var found = stat()
        return stat(path, &found) == 0 ? Int(found.st_size) : nil
    }
}
