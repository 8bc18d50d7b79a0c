import FoundationEssentials
import Glibc

/// A file that is read or written in pieces, so that its size does not matter.
final class FileStream {
    private let descriptor: Int32

    /// - Throws: `POSIXError` if it cannot be opened to be read; a folder can.
    init(reading path: String) throws {
        descriptor = try Self.open(path, O_RDONLY)
    }

    /// Empties the file, which is made if there is none.
    ///
    /// - Throws: `POSIXError` if it cannot be opened to be written.
    init(writing path: String) throws {
        descriptor = try Self.open(path, O_WRONLY | O_CREAT | O_TRUNC)
    }

    deinit { close(descriptor) }

    private static func open(_ path: String, _ flags: Int32) throws -> Int32 {
        let descriptor = unsafe Glibc.open(path, flags | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw POSIXError.last }
        return descriptor
    }

    /// The next bytes, at most as many; none at the end.
    ///
    /// - Throws: `POSIXError` if it cannot be read.
    func read(upTo count: Int) throws -> [UInt8] {
        try StandardStreams.read(descriptor, upTo: count)
    }

    /// Writes all of `bytes`.
    ///
    /// - Throws: `POSIXError` if there is no room.
    func write(_ bytes: [UInt8]) throws {
        try StandardStreams.write(bytes, to: descriptor)
    }
}

extension POSIXError {
    /// Why the last call of the system failed.
    static var last: POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
}
