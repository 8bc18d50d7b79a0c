package import FoundationEssentials
import Glibc

/// Reads a file to its end, whatever kind of file it is.
///
/// `Data(contentsOf:)` refuses anything but regular files, and so refuses the pipes `<(…)` and
/// `/dev/stdin` that a shell passes.
package enum WholeFile {
    private static let pieceBytes = 64 * 1024

    /// Returns the content of the file at `path`.
    ///
    /// The limit also ends the reading of an endless file such as `/dev/zero`.
    ///
    /// - Throws: `POSIXError` if the file cannot be read (a folder cannot) or has more than `most`
    ///   bytes.
    package static func bytes(at path: String, atMost most: Int) throws(POSIXError) -> [UInt8] {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure }
        defer { Glibc.close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: pieceBytes)
        while true {
            let count = Glibc.read(descriptor, &piece, pieceBytes)
            if count == 0 { return bytes }
            if count > 0 {
                bytes += piece[..<count]
                guard bytes.count <= most else { throw POSIXError(.EFBIG) }
            } else if errno != EINTR {
                throw failure
            }
        }
    }

    /// The error of the last system call, from `errno`.
    private static var failure: POSIXError {
        POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
}
