package import FoundationEssentials
import Glibc

extension Error {
    /// Why something could not be done with a file, as the system says it; of another error, what
    /// it says itself.
    package var systemReason: String {
        switch self {
        case let error as POSIXError: String(cString: unsafe strerror(error.code.rawValue))
        case let error as CocoaError: reason(of: error)
        default: "\(self)"
        }
    }

    /// Whether it says that there is no such file.
    package var isMissingFile: Bool {
        switch self {
        case let error as POSIXError: error.code == .ENOENT
        case let error as CocoaError:
            error.code == .fileReadNoSuchFile || error.code == .fileNoSuchFile
        default: false
        }
    }
}

/// Why something could not be done with a file: FoundationEssentials keeps what the system said,
/// and has no sentences of its own.
private func reason(of error: CocoaError) -> String {
    if let cause = error.userInfo["NSUnderlyingError"] as? POSIXError { return cause.systemReason }
    return switch error.code {
    case .fileNoSuchFile, .fileReadNoSuchFile: "there is no such file"
    case .fileReadNoPermission, .fileWriteNoPermission: "it is not permitted"
    case .fileWriteFileExists: "it exists already"
    case .fileWriteOutOfSpace: "the disk is full"
    case .fileReadInapplicableStringEncoding: "it is not UTF-8"
    case .fileReadInvalidFileName: "it is no name of a file"
    default: "error \(error.code.rawValue) of the file system"
    }
}

extension FileManager {
    /// Whether there is a folder at `path`.
    package func isFolder(_ path: String) -> Bool {
        var isFolder = false
        return fileExists(atPath: path, isDirectory: &isFolder) && isFolder
    }

    /// Whether there is a file at `path` that can be read again and again, as a pipe cannot.
    package func isPlainFile(_ path: String) -> Bool {
        var found = stat()
        return stat(path, &found) == 0 && found.st_mode & S_IFMT == S_IFREG
    }

    /// The bytes of the file at `path`; `nil` if there is none to be looked at.
    ///
    /// Not by its attributes, whose numbers are of another type in a process that has not loaded
    /// all of Foundation.
    package func bytes(at path: String) -> Int? {
        var found = stat()
        return stat(path, &found) == 0 ? Int(found.st_size) : nil
    }
}
