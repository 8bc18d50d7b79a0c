import FoundationEssentials
import Glibc

/// A file that is read or written in pieces, so that it may be larger than the memory.
final class FileStream {
    private let descriptor: Int32

    /// - Throws: `POSIXError` if the file cannot be opened for reading. Opening a folder succeeds.
    init(reading path: String) throws {
        descriptor = try Self.open(path, O_RDONLY)
    }

    /// Creates the file, or empties the existing one.
    ///
    /// - Throws: `POSIXError` if the file cannot be opened for writing.
    init(writing path: String) throws {
        descriptor = try Self.open(path, O_WRONLY | O_CREAT | O_TRUNC)
    }

    deinit { close(descriptor) }

    private static func open(_ path: String, _ flags: Int32) throws -> Int32 {
        let descriptor = unsafe Glibc.open(path, flags | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw POSIXError.last }
        return descriptor
    }

    /// Reads up to `count` bytes; returns none at the end.
    ///
    /// - Throws: `POSIXError` if the file cannot be read.
    func read(upTo count: Int) throws -> [UInt8] {
        try StandardStreams.read(descriptor, upTo: count)
    }

    /// Writes all of `bytes`.
    ///
    /// - Throws: `POSIXError` if they cannot be written, for example because the disk is full.
    func write(_ bytes: [UInt8]) throws {
        try StandardStreams.write(bytes, to: descriptor)
    }
}

extension POSIXError {
    /// The error of the last system call.
    static var last: POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
}
